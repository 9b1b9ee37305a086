// A worker process for the chaos tests. Its one argument is JSON:
// { name, ledger, connect: Millrace.connect's options, work: Millrace.work's options, types }.
// Every start and end of a handler, every abort and every telling event becomes one JSON line in the
// ledger file, an oracle that does not depend on PostgreSQL. Ends with a "stop" message.
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineJob, Millrace } from "../../dist/index.js";

const { name, ledger, connect, work, types } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

function write(what, fields) {
  const t = Number(process.hrtime.bigint()) / 1e6;
  writeSync(file, `${JSON.stringify({ t, proc: name, what, ...fields })}\n`);
}

const die = () => process.kill(process.pid, "SIGKILL");
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** What a handler does, by the payload's kind; `once`: only on the first attempt, then quick. */
const kinds = {
  quick: () => {},
  long: ({ ms, signal }) => delay(ms, undefined, { signal }),
  // Nobody waits for it: a process that has stopped may exit.
  deaf: ({ ms }) => delay(ms, undefined, { ref: false }),
  block: ({ ms }) => block(ms),
  exit: () => die(),
  die_after: () => {},
  fail: () => {
    throw new Error("as asked");
  },
};

async function run({ payload, attempt, job, signal }) {
  const { id, idempotencyKey } = job;
  const run = { job: id, token: `${job.token.claimId}/${job.token.claimNo}`, attempt };
  write("start", { ...run, key: idempotencyKey });
  signal.addEventListener("abort", () => write("abort", { ...run, reason: signal.reason.cause }));
  const kind = payload.once && attempt > 1 ? "quick" : payload.kind;
  try {
    await kinds[kind]({ ms: payload.ms, signal });
    return { by: name };
  } finally {
    write("end", run);
    if (kind === "die_after") die();
  }
}

const watched = [
  "job.settle_refused",
  "job.settle_repeated",
  "job.aborted",
  "job.lapsed",
  "lease.lost",
  "lease.opened",
  "claim.replayed",
  "claim.released",
  "flush.resolved",
  "reclaim.waited",
  "connection.lost",
  "connection.restored",
  "service.failed",
];

const millrace = await Millrace.connect({ logLevel: "silent", ...connect });
for (const event of watched) {
  millrace.events.on(event, ({ id, outcome, reason, jobs, claims, connection, service, error }) => {
    const kind = outcome?.kind ?? outcome;
    const message = error === undefined ? undefined : String(error?.message ?? error);
    write(event, { job: id, outcome: kind, reason, jobs, claims, connection, service, message });
  });
}

process.on("message", async (message) => {
  if (message.do === "enqueue") {
    const { id } = await millrace.enqueue(defineJob({ type: message.type }), message.payload);
    process.send({ answer: message.no, id });
  } else if (message.do === "stop") {
    await millrace.stop();
    write("stopped", {});
    process.disconnect();
  }
});
// The test is gone: so are we.
process.on("disconnect", () => setTimeout(() => process.exit(0), 5_000).unref());

await millrace.work(
  types.map(({ type, ...options }) => defineJob({ ...options, type, run })),
  { name, ...work },
);
process.send({ ready: true });
