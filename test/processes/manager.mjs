// A manager process for the chaos tests. Its one argument is JSON:
// { name, ledger, connect: Millrace.connect's options, writes }.
// Elections and losses become lines of the ledger. With `writes` it also tries, again and again, to
// write under every term it was elected for, whether it should know better or not.
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { Millrace } from "../../dist/index.js";

const { name, ledger, connect, writes } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

function write(what, fields) {
  const t = Number(process.hrtime.bigint()) / 1e6;
  writeSync(file, `${JSON.stringify({ t, proc: name, what, ...fields })}\n`);
}

process.on("uncaughtException", (error) => {
  write("uncaught", { ready: true, message: String(error?.stack ?? error), code: error?.code });
  process.exit(70);
});

const millrace = await Millrace.connect({ logLevel: "silent", ...connect });
const terms = [];
millrace.events.on("leader.elected", ({ term }) => {
  terms.push(term);
  write("leader.elected", { term });
});
millrace.events.on("leader.lost", ({ term, reason }) => write("leader.lost", { term, reason }));
for (const event of ["job.lapsed", "reclaim.waited", "dispatch.direct", "dispatch.brokered"]) {
  millrace.events.on(event, ({ id, reason }) => write(event, { job: id, reason }));
}
millrace.events.on("jobs.promoted", ({ jobs, latenessMs }) =>
  write("jobs.promoted", { jobs, latenessMs }),
);
millrace.events.on("service.failed", ({ service, error }) =>
  write("service.failed", { service, message: String(error?.message ?? error), code: error?.code }),
);

const manager = await millrace.manage();
let stopping = false;

async function writeUnder(term) {
  try {
    await millrace.store.asLeader(term, (tx) =>
      tx.query("insert into leader_write (term, proc) values ($1, $2)", [term, name]),
    );
    write("write.accepted", { term });
  } catch (error) {
    write(error.code === "NOT_LEADER" ? "write.refused" : "write.failed", { term });
  }
}

async function writeAlways() {
  while (!stopping) {
    for (const term of terms) await writeUnder(term);
    await delay(20);
  }
}

process.on("message", async (message) => {
  if (message.do === "reports") process.send({ to: message.no, answer: manager.reports });
  else if (message.do === "stop") {
    stopping = true;
    await millrace.stop();
    write("stopped", {});
    process.disconnect();
  }
});
process.on("disconnect", () => setTimeout(() => process.exit(3), stopping ? 30_000 : 0).unref());

if (writes) void writeAlways();
process.send({ ready: true });
