// The keeper: a small process of its own that runs the embedded PostgreSQL for as long as anybody
// is connected to it (see embedded-membership.ts), restarts it if it dies, and stops it after the
// last one. Plain JavaScript, because it is run as it is: from src in tests, from dist elsewhere.
// Its orders come as JSON on standard input.

import { spawn } from "node:child_process";
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import {
  closeSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";

const firstHolderWithinMs = 15_000;
const renewStateMs = 2_000;
const pollMs = 10;
const adoptedPollMs = 250;
const fastStopMs = 30_000;
const retryForMs = 15_000;
const restartPauseMs = 500;
const farewellMs = 1_000;
/** Failures that pass: another's port, or backends of a killed server that are still leaving. */
const passing = /Address already in use|pre-existing shared memory|lock file .* already exists/;

const orders = JSON.parse(await text(process.stdin));
/** By socket, the process that it says it is. */
const holders = new Map();
let server = orders.adopt;
let stopping;
let toldSomebody;
const somebodyTold = new Promise((done) => {
  toldSomebody = done;
});

const gate = createServer({ allowHalfOpen: true }, (socket) => {
  socket.on("error", () => socket.destroy());
  admit(socket).catch(() => socket.destroy());
});
gate.listen(0, "127.0.0.1");
await once(gate, "listening");
writeState();
process.stdout.on("error", () => undefined);
process.stdout.end("listening\n");
for (const ignored of ["SIGINT", "SIGHUP", "SIGPIPE"]) process.on(ignored, () => undefined);
process.on("SIGTERM", stop);
setInterval(renewState, renewStateMs).unref();
setTimeout(() => holders.size === 0 && stop(), firstHolderWithinMs);

const ready = server === undefined ? start() : Promise.resolve();
// Whoever launched us may come later than the failure, and is to hear its reason.
ready.then(watch, () => somebodyTold.then(stop));

async function admit(socket) {
  const lines = linesOf(socket);
  const hello = JSON.parse(await lines.next());
  const nonce = randomBytes(16).toString("hex");
  send(socket, { nonce, proof: proofOf(`keeper:${hello.nonce}`) });
  const { proof, pid } = JSON.parse(await lines.next());
  if (!isProof(proof, `holder:${nonce}`) || stopping !== undefined) return socket.destroy();
  const others = [...holders.values()].filter((one) => Number.isInteger(one));
  holders.set(socket, pid);
  lines.ended.then(() => release(socket));
  await ready.then(
    () => send(socket, { ready: server.port, others }),
    (error) => send(socket, { failed: error.message }),
  );
  toldSomebody();
}

function release(socket) {
  holders.delete(socket);
  if (holders.size > 0) return socket.end();
  // The last one is answered by the end of this process: then the server has stopped.
  stop();
}

async function start() {
  const deadline = Date.now() + retryForMs;
  for (;;) {
    try {
      return await startOnce(orders.port ?? (await freePort()));
    } catch (error) {
      if (stopping !== undefined || !passing.test(error.message) || Date.now() > deadline)
        throw error;
      await delay(restartPauseMs);
    }
  }
}

async function startOnce(port) {
  if (stopping !== undefined) throw new Error("The server was stopped before it was ready.");
  const log = openSync(orders.log, "a", 0o600);
  const logStart = statSync(orders.log).size;
  const folder = orders.byDescriptor ? openSync(orders.dataDir, "r") : "ignore";
  const child = spawn(orders.program, [...orders.arguments, "-c", `port=${port}`], {
    ...orders.user,
    cwd: "/",
    env: orders.environment,
    stdio: ["ignore", log, log, folder],
  });
  let failure;
  child.once("error", (error) => {
    failure = error;
  });
  closeSync(log);
  if (orders.byDescriptor) closeSync(folder);
  server = { port, pid: child.pid, child };
  while (!isReady(child.pid)) {
    if (failure !== undefined || hasExited(child)) {
      const tail = readFileSync(orders.log).subarray(logStart).toString().trim().slice(-2_000);
      throw new Error(`PostgreSQL did not start: ${failure?.message ?? ""}\n${tail}`);
    }
    await delay(pollMs);
  }
  orders.port = port;
}

async function watch() {
  while (stopping === undefined) {
    await gone();
    if (stopping !== undefined) return;
    await delay(restartPauseMs);
    await start().catch((error) => process.stderr.write(`${error.message}\n`));
  }
}

async function gone() {
  if (server.child === undefined) {
    while (isAlive(server.pid)) await delay(adoptedPollMs);
  } else if (!hasExited(server.child)) await once(server.child, "exit");
}

function stop() {
  stopping ??= shutDown();
}

async function shutDown() {
  gate.close();
  if (server?.pid !== undefined) {
    signal("SIGINT");
    const impatience = setTimeout(() => signal("SIGQUIT"), fastStopMs);
    await gone();
    clearTimeout(impatience);
  }
  rmSync(orders.state, { force: true });
  // Some may still wait to be told why the server did not start.
  await ready.catch(() => undefined);
  const farewells = [...holders.keys()].map((socket) => new Promise((done) => socket.end(done)));
  await Promise.race([Promise.all(farewells), delay(farewellMs)]);
  process.exit(0);
}

function signal(name) {
  try {
    process.kill(server.pid, name);
  } catch {
    // It has gone by itself.
  }
}

function isReady(pid) {
  try {
    const lines = readFileSync(orders.pidFile, "utf8").split("\n");
    return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
  } catch {
    return false;
  }
}

function isAlive(pid) {
  try {
    process.kill(pid, 0);
    if (process.platform !== "linux") return true;
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return !stat.slice(stat.lastIndexOf(")")).startsWith(") Z");
  } catch {
    return false;
  }
}

function hasExited(child) {
  return child.exitCode !== null || child.signalCode !== null;
}

async function freePort() {
  const probe = createServer().listen(0, "127.0.0.1");
  await once(probe, "listening");
  const { port } = probe.address();
  probe.close();
  await once(probe, "close");
  return port;
}

function writeState() {
  const state = { pid: process.pid, port: gate.address().port, host: orders.host };
  writeFileSync(`${orders.state}.new`, JSON.stringify(state), { mode: 0o644 });
  renameSync(`${orders.state}.new`, orders.state);
}

/** Tells other containers, which cannot see this process, that it lives. */
function renewState() {
  try {
    utimesSync(orders.state, new Date(), new Date());
  } catch {
    // Somebody deleted the data folder under us; the holders will notice soon enough.
  }
}

function linesOf(socket) {
  let buffered = "";
  let wake = () => undefined;
  socket.setEncoding("utf8");
  socket.on("data", (chunk) => {
    buffered += chunk;
    if (buffered.length > 4_096) socket.destroy();
    wake();
  });
  const ended = new Promise((done) => {
    socket.once("end", done);
    socket.once("close", done);
  });
  ended.then(() => wake());
  const next = async () => {
    while (!buffered.includes("\n")) {
      if (socket.destroyed || socket.readableEnded) throw new Error("the other side has gone");
      await new Promise((done) => {
        wake = done;
      });
    }
    const [line, ...rest] = buffered.split("\n");
    buffered = rest.join("\n");
    return line;
  };
  return { next, ended };
}

function send(socket, message) {
  if (socket.writable) socket.write(`${JSON.stringify(message)}\n`);
}

function proofOf(value) {
  return createHmac("sha256", orders.password).update(value).digest("hex");
}

function isProof(given, value) {
  const expected = Buffer.from(proofOf(value));
  const actual = Buffer.from(String(given));
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}
