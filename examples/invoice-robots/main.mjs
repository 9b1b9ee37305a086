// Invoices for robots: items over HTTP, each reference once, business exceptions that nobody retries,
// and a queue trigger that books what the robots have read.
import { randomUUID } from "node:crypto";
import { defineJob, Millrace } from "millrace";
import { BusinessException, HttpClient, RobotWorker } from "millrace/client";
import { HttpServer } from "millrace/http";
import { ownDatabase } from "../own-database.mjs";
import { readInvoice } from "./invoices.mjs";

const run = Date.now();
const scans = `invoice-scans-${run}`;
const bookings = `invoice-bookings-${run}`;
const say = (text) => console.log(text);

// Usually `npx millrace serve --manager` in a process of its own, and robots elsewhere.
const millrace = await Millrace.connect({ ...ownDatabase(), logLevel: "error" });
const adminKey = randomUUID();
const server = new HttpServer({ millrace, port: 0, adminKey });
await server.start();
const admin = new HttpClient({ url: server.url, key: adminKey });
const post = (client, path, body) => client.caller.call("POST", path, { body });

say("1. A queue in which every reference is used once, and a key for robots");
const queue = { name: scans, max_retries: 2, enforce_unique_reference: true };
await post(admin, "/api/queues", queue);
await post(admin, "/api/queues", { name: bookings });
const { key } = await post(admin, "/api/keys", {
  ...{ name: `invoice robot ${run}`, role: "robot", tenant_id: "default" },
});
const robots = new HttpClient({ url: server.url, key });
const add = (reference, payload, priority = 0) =>
  post(robots, "/api/queue-items/add", { queue_name: scans, reference, payload, priority });

const items = [
  await add("INV-1", { net: 100 }),
  await add("INV-2", { net: 80, blurred: true }),
  await add("INV-3", { net: -5 }),
  await add("INV-4", { net: 20 }, 10),
];
const twice = await add("INV-1", { net: 100 }).catch((error) => error);
say(`  INV-1 a second time: ${twice.code}, HTTP ${await statusOfSecondAdd()}`);

say("2. A queue trigger: what the robots have read becomes jobs");
const booked = [];
const book = defineJob({
  type: `invoices.book.${run}`,
  queue: `ledger-${run}`,
  async run({ payload }) {
    for (const id of payload.queue_item_ids) booked.push((await millrace.get(id)).payload);
    say(`  one job booked ${payload.queue_item_ids.length} invoice(s)`);
    return { booked: payload.queue_item_ids.length };
  },
});
await millrace.work([book]);
await post(admin, "/api/triggers", {
  ...{ name: `book ${run}`, type: "QUEUE", queue: bookings, batch_size: 10, on_arrival: true },
  ...{ job_type: book.type, job_queue: book.queue },
});
say("3. Two robots lease, work and say how it ended; the most urgent item comes first");
const robot = new RobotWorker(robots, {
  ...{ queue: scans, concurrency: 2, waitSeconds: 1, robotId: "robot-7" },
  async run({ item }) {
    try {
      const read = readInvoice(item);
      // What was read goes to another queue, from which the trigger takes it.
      await post(robots, "/api/queue-items/add", { queue_name: bookings, payload: read });
      say(`  ${item.reference}: read at run ${item.retries + 1}`);
      return read;
    } catch (error) {
      const kind =
        error instanceof BusinessException ? "business exception" : "application exception";
      say(`  ${item.reference}: ${kind}: ${error.message}`);
      throw error;
    }
  },
});
robot.start();

const read = (id) => robots.caller.call("GET", `/api/queue-items/${id}`);
const ended = ["DONE", "FAILED"];
await until(async () => {
  const now = await Promise.all(items.map(({ id }) => read(id)));
  return now.every(({ status }) => ended.includes(status)) && booked.length === 3;
});
await robot.stop();

say("4. How they ended");
const ends = await Promise.all(items.map(({ id }) => read(id)));
for (const { reference, status, retries, result, exception_type } of ends)
  say(`  ${reference} ${status} retries ${retries} ${JSON.stringify(result ?? exception_type)}`);
const [wrong] = await admin.deadLetters({ queue: scans });
say(`  dead letter: "${wrong.errorMessage}" (${wrong.errorClass}), after ${wrong.attempt} run`);
say(`  booked in all: ${booked.reduce((sum, { gross }) => sum + gross, 0)}`);

await server.stop();
await millrace.stop();
const asItShould = [
  twice.code === "REFERENCE_TAKEN",
  ends.map(({ status }) => status).join() === "DONE,DONE,FAILED,DONE",
  ends.map(({ retries }) => retries).join() === "0,1,0,0",
  booked.length === 3,
];
if (asItShould.includes(false)) process.exitCode = 1;

/** As a robot in any language would see it. */
async function statusOfSecondAdd() {
  const answer = await fetch(`${server.url}/api/queue-items/add`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify({ queue_name: scans, reference: "INV-1", payload: { net: 100 } }),
  });
  return answer.status;
}

async function until(isSo) {
  const giveUpAt = Date.now() + 60_000;
  while (!(await isSo())) {
    if (Date.now() > giveUpAt) throw new Error("this takes too long");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
