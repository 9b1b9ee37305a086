// A worker process for the chaos tests. Its one argument is JSON:
// { name, ledger, connect: Millrace.connect's options, work: Millrace.work's options, types, besides: the types of a
// second worker }.
// Every start and end of a handler, every abort and every telling event becomes one JSON line in the
// ledger file, an oracle that does not depend on PostgreSQL. Ends with a "stop" message.
import { openSync, writeSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { defineJob, Millrace } from "../../dist/index.js";

const { name, ledger, connect, work, types, besides } = JSON.parse(process.argv[2]);
const file = openSync(ledger, "a");

function write(what, fields) {
  const t = Number(process.hrtime.bigint()) / 1e6;
  writeSync(file, `${JSON.stringify({ t, proc: name, what, ...fields })}\n`);
}

const die = () => process.kill(process.pid, "SIGKILL");
let release;
const released = new Promise((resolve) => {
  release = resolve;
});
const block = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

/** What a handler does, by the payload's kind; `once`: on the first attempt only, and then `then`. */
const kinds = {
  quick: () => {},
  long: ({ ms, signal }) => delay(ms, undefined, { signal }),
  // Nobody waits for it: a process that has stopped may exit.
  deaf: ({ ms }) => delay(ms, undefined, { ref: false }),
  // Hears its signal, and completes all the same.
  stubborn: ({ signal }) =>
    new Promise((resolve) => {
      signal.addEventListener("abort", () => setTimeout(resolve, 100));
    }),
  hold: () => released,
  block: ({ ms }) => block(ms),
  exit: () => die(),
  die_after: ({ ms }) => ms && delay(ms),
  fail: async ({ ms = 0 }) => {
    await delay(ms);
    throw new Error("as asked");
  },
};

async function run({ payload, attempt, job, signal }) {
  const { id, idempotencyKey } = job;
  const run = { job: id, token: `${job.token.claimId}/${job.token.claimNo}`, attempt };
  write("start", { ...run, key: idempotencyKey });
  signal.addEventListener("abort", () => write("abort", { ...run, reason: signal.reason.cause }));
  const again = payload.once && attempt > 1;
  const kind = again ? (payload.then?.kind ?? "quick") : payload.kind;
  try {
    await kinds[kind]({ ms: (again ? payload.then : payload)?.ms, signal });
    return { by: name, token: run.token };
  } finally {
    write("end", run);
    if (kind === "die_after") die();
  }
}

const watched = [
  "job.settle_refused",
  "job.settle_repeated",
  "job.aborted",
  "job.lapsed",
  "lease.lost",
  "lease.opened",
  "claim.replayed",
  "claim.released",
  "flush.resolved",
  "reclaim.waited",
  "dispatch.brokered",
  "dispatch.direct",
  "connection.lost",
  "connection.restored",
  "service.failed",
];

// An error that nobody caught ends the process, as it would end anybody's; the test hears of it.
let ready = false;
process.on("uncaughtException", (error) => {
  write("uncaught", { ready, message: String(error?.stack ?? error), code: error?.code });
  process.exit(ready ? 70 : 1);
});

const millrace = await Millrace.connect({ logLevel: "silent", ...connect });
for (const event of watched) {
  millrace.events.on(event, ({ id, outcome, reason, jobs, claims, connection, service, error }) => {
    const kind = outcome?.kind ?? outcome;
    const message = error === undefined ? undefined : String(error?.message ?? error);
    write(event, { job: id, outcome: kind, reason, jobs, claims, connection, service, message });
  });
}

millrace.events.on("jobs.promoted", ({ jobs, latenessMs }) =>
  write("jobs.promoted", { jobs, latenessMs }),
);

let stopping = false;
process.on("message", async (message) => {
  if (message.do === "enqueue") {
    const { id } = await millrace.enqueue(defineJob({ type: message.type }), message.payload);
    process.send({ to: message.no, answer: id });
  } else if (message.do === "cancel") {
    process.send({ to: message.no, answer: await millrace.cancel(message.id) });
  } else if (message.do === "release") {
    release();
  } else if (message.do === "stop") {
    stopping = true;
    await millrace.stop();
    write("stopped", {});
    process.disconnect();
  }
});
// After a stop nothing may keep the process; without one, the test is gone.
process.on("disconnect", () => setTimeout(() => process.exit(3), stopping ? 30_000 : 0).unref());

const toJobs = (some) => some.map(({ type, ...options }) => defineJob({ ...options, type, run }));
await millrace.work(toJobs(types), { name, ...work });
if (besides !== undefined) await millrace.work(toJobs(besides), { name: `${name}-2`, ...work });
ready = true;
process.send({ ready });
