// Runs the jobs of the queue "door" and tells of those that say who they are. Its one argument is JSON:
// { url }. On a message it tells how many others it has run and what its heap holds.
import { defineJob, Millrace } from "../../dist/index.js";

const { url } = JSON.parse(process.argv[2]);
const millrace = await Millrace.connect({ databaseUrl: url, logLevel: "silent" });
let completed = 0;
const job = defineJob({
  type: "door",
  queue: "door",
  run({ payload }) {
    if (payload.quiet === undefined) completed++;
    else process.send({ quiet: payload.quiet });
  },
});

process.on("message", async (message) => {
  if (message === "count") {
    globalThis.gc?.();
    process.send({ completed, heap: process.memoryUsage().heapUsed });
    return;
  }
  await millrace.stop();
  process.disconnect();
});

await millrace.work([job], { concurrency: 20 });
process.send("ready");
