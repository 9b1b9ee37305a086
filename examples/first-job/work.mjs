// Runs jobs until there are none left; a real worker would simply go on until it is stopped.
import { setTimeout as pause } from "node:timers/promises";
import { Millrace } from "millrace";
import { dataDir } from "./database.mjs";
import { greet } from "./jobs.mjs";

const millrace = await Millrace.connect({ dataDir, logLevel: "warn" });
await millrace.work([greet], { concurrency: 10 });
millrace.events.on("job.settled", ({ outcome }) => {
  if (outcome.kind === "retried") console.log(`failed (${outcome.error.message}), again soon`);
});
for (;;) {
  const queues = await millrace.queues();
  const { counts } = queues.find(({ name }) => name === "greetings");
  if (counts.depth === 0) break;
  await pause(100);
}
await millrace.stop();
console.log("nothing left to do");
