// Makes a throw-away database, prints its URL and schema, enqueues a job, and waits to be killed.
import { defineJob } from "../../dist/index.js";
import { createTestMillrace } from "../../dist/testing.js";

const { millrace } = await createTestMillrace();
await millrace.enqueue(defineJob({ type: "left.behind" }), {});
console.log(JSON.stringify({ url: millrace.databaseUrl, schema: millrace.config.schema }));
setInterval(() => undefined, 1_000);
