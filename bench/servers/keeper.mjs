// Keeps one server process and its folder for as long as the bench lives: when the channel to the bench
// closes, however that happened, the server is stopped and its folder removed.
import { spawn } from "node:child_process";
import { rmSync } from "node:fs";

const { command, argv0, args, folder, uid, gid, env, stopSignal } = JSON.parse(process.argv[2]);
const server = spawn(command, args, {
  cwd: folder,
  env: { ...process.env, ...env },
  stdio: ["ignore", "pipe", "pipe"],
  detached: true,
  ...(argv0 ? { argv0 } : {}),
  ...(uid === undefined ? {} : { uid, gid }),
});

let log = "";
const remember = (chunk) => {
  log = (log + chunk).slice(-4000);
};
server.stdout.on("data", remember);
server.stderr.on("data", remember);
server.on("error", (error) => end(`${command}: ${error.message}`));
server.on("exit", () => end(`the server ended:\n${log}`));
server.on("spawn", () => process.send({ pid: server.pid }));

let stopping = false;
function end(reason) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  if (!stopping && process.connected) process.send({ failed: reason }, () => process.exit(1));
  else process.exit(0);
}

function stop() {
  if (stopping) return;
  stopping = true;
  server.kill(stopSignal);
  setTimeout(() => server.kill("SIGKILL"), 5000).unref();
}
process.on("disconnect", stop);
process.on("SIGTERM", stop);
process.on("SIGINT", () => {}); // Ctrl-C reaches the whole group; the bench decides when to stop us.
