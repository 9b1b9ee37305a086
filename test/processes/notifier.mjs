// A process that runs the notifier and makes deliveries. Its one argument is JSON:
// { connect: Millrace.connect's options, start: millrace.notifications.start's options }.
// Passes on what happens as messages, and ends with a "stop" message, or when the test is gone.
import { Millrace } from "../../dist/index.js";

const { connect, start } = JSON.parse(process.argv[2]);
const millrace = await Millrace.connect({ logLevel: "silent", ...connect });
for (const event of ["notification.dispatched", "webhook.delivered", "webhook.delivery_failed"])
  millrace.events.on(event, (fields) => process.send({ event, ...fields }));

process.on("message", async () => {
  await millrace.stop();
  process.disconnect();
});
process.on("disconnect", () => setTimeout(() => process.exit(0), 0));

await millrace.notifications.start(start);
process.send({ event: "ready" });
