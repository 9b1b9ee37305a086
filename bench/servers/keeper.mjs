// Keeps one server process and its folder for as long as the bench lives: when the channel to the bench
// closes, however that happened, the server is stopped and its folder removed. Asked to, it kills the server
// and starts it again in the same folder.
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

const { command, argv0, args, folder, uid, gid, env, stopSignal } = JSON.parse(process.argv[2]);
let server;
let killed = false;
let stopping = false;

let log = "";
const remember = (chunk) => {
  log = (log + chunk).slice(-4000);
};

function start() {
  server = spawn(command, args, {
    cwd: folder,
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
    ...(argv0 ? { argv0 } : {}),
    ...(uid === undefined ? {} : { uid, gid }),
  });
  killed = false;
  server.stdout.on("data", remember);
  server.stderr.on("data", remember);
  server.on("error", (error) => end(`${command}: ${error.message}`));
  server.on("exit", () => {
    if (!killed || stopping) end(`the server ended:\n${log}`);
    else process.send({ killed });
  });
  server.on("spawn", () => process.send({ pid: server.pid }));
}

function end(reason) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  if (!stopping && process.connected) process.send({ failed: reason }, () => process.exit(1));
  else process.exit(0);
}

function stop() {
  if (stopping) return;
  stopping = true;
  if (server.exitCode !== null || server.signalCode !== null) return end();
  server.kill(stopSignal);
  setTimeout(() => server.kill("SIGKILL"), 5000).unref();
}
process.on("message", (wish) => {
  if (wish === "start") return start();
  killed = true;
  server.kill("SIGKILL");
});
process.on("disconnect", stop);
process.on("SIGTERM", stop);
process.on("SIGINT", () => {}); // Ctrl-C reaches the whole group; the bench decides when to stop us.

start();
