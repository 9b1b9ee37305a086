// Enqueues five jobs. They are on disk when enqueue() returns, whether a worker runs or not.
import { Millrace } from "millrace";
import { dataDir } from "./database.mjs";
import { greet } from "./jobs.mjs";

const millrace = await Millrace.connect({ dataDir, logLevel: "warn" });
const names = ["Ada", "Bob", "Cleo", "Dan", "Eve"];
for (const [i, name] of names.entries()) {
  const { id } = await millrace.enqueue(greet, { name, n: i + 1 });
  console.log(`enqueued ${name} as ${id}`);
}
await millrace.stop();
