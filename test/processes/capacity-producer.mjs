// Enqueues as fast as it can, so many at once, until a whole round was refused. Its one argument is JSON:
// { url, queue, tenant, atOnce }. It says "ready", waits for a message, and tells how many were accepted.
import { defineJob, Millrace } from "../../dist/index.js";

const { url, queue, tenant, atOnce } = JSON.parse(process.argv[2]);
const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
const job = defineJob({ type: "capacity", queue });

process.once("message", async () => {
  let accepted = 0;
  for (let passed = atOnce; passed > 0; accepted += passed) {
    const calls = Array.from({ length: atOnce }, () => millrace.enqueue(job, {}, { tenant }));
    const answers = await Promise.allSettled(calls);
    const refusals = answers.flatMap(({ reason }) => reason ?? []);
    const other = refusals.find(({ code }) => code !== "TENANT_FULL");
    if (other !== undefined) throw other;
    passed = atOnce - refusals.length;
  }
  process.send({ accepted });
  await millrace.stop();
  process.disconnect();
});

process.send("ready");
