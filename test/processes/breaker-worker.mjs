// A worker whose jobs call a platform over HTTP, behind its breaker. Its one argument is JSON:
// { name, connect: Millrace.connect's options, platform: a URL, concurrency, queue }.
// Each call says who makes it, for which job and attempt, and when its handler began.
import { defineJob, Millrace } from "../../dist/index.js";

const { name, connect, platform, concurrency, queue } = JSON.parse(process.argv[2]);
const millrace = await Millrace.connect({ logLevel: "silent", ...connect });

const call = defineJob({
  type: "platform.call",
  queue,
  platform: "platform",
  maxAttempts: 1_000,
  retry: { baseMs: { transient: 500, retryable: 500 }, capMs: 2_000 },
  async run({ job, attempt, signal }) {
    const at = Date.now();
    const said = new URLSearchParams({ by: name, job: job.id, attempt, at });
    const response = await fetch(`${platform}?${said}`, { signal });
    await response.text();
    if (!response.ok) throw new Error(`the platform said ${response.status}`);
  },
});

process.on("message", async () => {
  await millrace.stop();
  process.disconnect();
});
process.on("disconnect", () => setTimeout(() => process.exit(0), 0));

await millrace.work([call], { concurrency, name });
process.send("ready");
