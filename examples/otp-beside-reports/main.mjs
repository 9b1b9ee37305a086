// One-time passwords beside bulk reports, in one queue and one worker. A password is worth nothing
// after a minute; a report may come an hour later. So passwords are `high` and reports `low`.
import { setTimeout as pause } from "node:timers/promises";
import { defineJob, Millrace } from "millrace";
import { ownDatabase } from "../own-database.mjs";

const queue = `messages-${Date.now()}`;
const passwords = Number(process.env.PASSWORDS ?? 40);
const reports = Number(process.env.REPORTS ?? 5_000);
let sent = [];
let built = 0;

const sendOtp = defineJob({
  type: "otp.send",
  queue,
  priority: "high",
  expiresInMs: 60_000,
  async run({ payload }) {
    sent.push({ waitedMs: performance.now() - payload.askedAt, reportsBefore: built });
    await pause(15); // the text message's gateway
  },
});

const buildReport = defineJob({
  type: "report.build",
  queue,
  priority: "low",
  expiresInMs: 600_000, // what it leaves behind in a database that stays is cleared away
  async run() {
    await pause(20);
    built++;
  },
});

const millrace = await Millrace.connect({ ...ownDatabase(), logLevel: "error" });
await millrace.work([sendOtp, buildReport], { concurrency: 20 });

await askForPasswords(1); // opens the connections
const quiet = await askForPasswords(passwords);
const { REDIS_URL_HIGH, REDIS_URL_LOW } = process.env;
const isSharded = REDIS_URL_HIGH && REDIS_URL_LOW && REDIS_URL_HIGH !== REDIS_URL_LOW;
console.log(
  millrace.dispatch === "direct"
    ? "Dispatch: directly from PostgreSQL (no Redis)."
    : `Dispatch: over ${isSharded ? "two Redis servers, one for each kind" : "one Redis server"}.`,
);
console.log(`Nothing else to do:  ${describe(quiet)}`);

await millrace.enqueueMany(
  buildReport,
  Array.from({ length: reports }, (_, n) => ({ n })),
);
const before = built;
const flooded = await askForPasswords(passwords);
const depth = reports - built;
console.log(`Reports flood it:    ${describe(flooded)}`);
console.log(
  `Meanwhile ${built - before} reports were built, and ${depth} of ${reports} still wait.`,
);

await millrace.stop();
// The first password did not wait for what was there before it.
const hasOvertaken = flooded[0]?.reportsBefore < reports / 2;
if (flooded.length !== passwords || !hasOvertaken) process.exitCode = 1;

/** One after the other, as people ask for them. */
async function askForPasswords(count) {
  sent = [];
  for (let n = 0; n < count; n++) {
    const { id } = await millrace.enqueue(sendOtp, { user: n, askedAt: performance.now() });
    await millrace.waitFor(id);
  }
  return sent;
}

function describe(passwordsSent) {
  const sorted = passwordsSent.map(({ waitedMs }) => waitedMs).sort((a, b) => a - b);
  const at = (share) => sorted[Math.floor((sorted.length - 1) * share)].toFixed(1);
  return `${sorted.length} passwords waited ${at(0.5)} ms (median), ${at(1)} ms (longest)`;
}
