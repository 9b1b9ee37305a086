// Enqueues and runs a job, and says which packages were loaded for it; with an SDK if it is told to.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
if (process.argv[2] === "with-sdk") {
  const { trace } = require("@opentelemetry/api");
  const { BasicTracerProvider } = require("@opentelemetry/sdk-trace-base");
  trace.setGlobalTracerProvider(new BasicTracerProvider());
}
const { defineJob, Millrace } = await import("../../dist/index.js");
const { HttpServer } = await import("../../dist/http.js");
const millrace = await Millrace.connect({ logLevel: "silent" });
const server = new HttpServer({ millrace, port: 0 });
await server.start();
const job = defineJob({ type: "plain", queue: "plain", run: () => "done" });
await millrace.work([job]);
const { id } = await millrace.enqueue(job, 1);
const result = await millrace.result(id);
await server.stop();
await millrace.stop();
const packages = Object.keys(require.cache).map(
  (file) => /node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(file.replaceAll("\\", "/"))?.[1],
);
process.stdout.write(JSON.stringify({ result, packages: [...new Set(packages)] }));
