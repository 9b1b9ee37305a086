// A trigger runner in a process of its own, for the chaos tests. Its one argument is JSON:
// { url, diesAfter, diesIn }. The process kills itself right after the step `diesAfter`: a statement by its
// name, "begin", "before commit" or "commit", in a transaction that took the step `diesIn` before. Without
// a step it runs until it is killed.
import { TriggerRunner } from "../../dist/manager/trigger-runner.js";
import { systemClock } from "../../dist/runtime/clock.js";
import { Events } from "../../dist/runtime/events.js";
import { Database } from "../../dist/store/postgres/database.js";
import { triggerSession } from "../../dist/store/postgres/trigger-session.js";

const { url, diesAfter, diesIn } = JSON.parse(process.argv[2]);
const events = new Events();
const clock = systemClock;
const random = Math.random;
const database = new Database({
  ...{ url, schema: "millrace", poolSize: 1, queryTimeoutMs: 30_000, events, clock, random },
});
const connection = database.reserve("triggers", { settings: { lock_timeout: "2s" } });

async function transaction(body) {
  const steps = new Set();
  const reach = (step) => {
    steps.add(step);
    if (step === diesAfter && (diesIn === undefined || steps.has(diesIn)))
      process.kill(process.pid, "SIGKILL");
  };
  const value = await connection.transaction(async (run) => {
    reach("begin");
    const answer = await body(async (source, values) => {
      const rows = await run(source, values);
      reach(source.name);
      return rows;
    });
    reach("before commit");
    return answer;
  });
  reach("commit");
  return value;
}

events.on("service.failed", ({ error }) => {
  console.error(error);
  process.exit(4);
});
const session = triggerSession({
  ...{ connection, transaction, channel: database.channel, maxAttempts: 5 },
  withPartitions: (body) => body(),
});
const runner = new TriggerRunner({
  ...{ session, intervalMs: 200, clock, random, events },
  isWanted: async () => true,
});
await runner.start();
process.on("disconnect", () => process.exit(3));
process.send({ ready: true });
