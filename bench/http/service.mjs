// A process with Millrace: its HTTP service, and beside it a bare Fastify route that does one INSERT.
// It also enqueues by itself, for what the same process does without HTTP.
import { fastify } from "fastify";
import pg from "pg";
import { nowMs } from "../clock.mjs";
import { HttpServer } from "../dist/http.js";
import { defineJob, Millrace } from "../dist/index.js";
import { payloadOf } from "../payload.mjs";

const { databaseUrl, adminKey } = JSON.parse(process.argv[2]);
const job = defineJob({ type: "order.ship", queue: "bench" });
const millrace = await Millrace.connect({ databaseUrl, logLevel: "silent" });
const server = new HttpServer({ millrace, port: 0, adminKey, limits: { requestsPerSecond: 1e6 } });
await server.start();

const pool = new pg.Pool({ connectionString: databaseUrl, max: 10 });
await pool.query("create table bare (id uuid primary key default gen_random_uuid(), body json)");
const bare = fastify();
const text = "insert into bare (body) values ($1) returning id";
bare.post("/jobs", async (request, reply) => {
  const { rows } = await pool.query({ name: "bare", text, values: [JSON.stringify(request.body)] });
  return reply.code(201).send({ id: rows[0].id });
});
await bare.listen({ port: 0, host: "127.0.0.1" });

/** Calls of `size` jobs each, `inFlight` at once, for so long. */
async function enqueueHere({ size, inFlight, seconds }) {
  const startedAt = nowMs();
  const until = startedAt + seconds * 1_000;
  let jobs = 0;
  // Made once, as the body of the requests is: what is compared is the way in.
  const payloads = Array.from({ length: size }, (_, n) => payloadOf(n));
  const caller = async () => {
    while (nowMs() < until) {
      const { length } = await millrace.enqueueMany(job, payloads);
      jobs += length; // not in one expression: that would read `jobs` before it waits
    }
  };
  await Promise.all(Array.from({ length: inFlight }, caller));
  return (jobs * 1_000) / (nowMs() - startedAt);
}

process.on("message", async ({ id, enqueue }) => {
  if (enqueue === undefined) {
    await server.stop();
    await bare.close();
    await pool.end();
    await millrace.stop();
    process.exit(0);
  }
  process.send({ id, answer: await enqueueHere(enqueue) });
});
process.on("disconnect", () => process.exit(1));
process.send({
  ready: { service: server.url, bare: `http://127.0.0.1:${bare.server.address().port}` },
});
