// A process that takes from a queue on Redis and holds what it took, until it is told to ack it or dies.
// Its one argument is JSON: RedisQueue.connect's options. It tells its parent the ids.
import { RedisQueue } from "../../dist/queue/redis-queue.js";

const queue = await RedisQueue.connect(JSON.parse(process.argv[2]));
const items = await queue.dequeueMany({ max: 100, timeoutMs: 20_000 });
process.send({ taken: items.map(({ job }) => job) });
process.on("message", async () => {
  process.send({ acked: await Promise.all(items.map((item) => queue.ack(item))) });
});
process.on("disconnect", () => process.exit());
