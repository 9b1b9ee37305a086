// Sends one request again and again over so many connections that stay open, each as soon as it has the
// answer to the last one. Its own CPU is small: on two processors it would be measured with the service.
import { connect } from "node:net";
import { nowMs } from "../clock.mjs";

const { url, path, body, connections, seconds, key } = JSON.parse(process.argv[2]);
const { hostname, port, host } = new URL(url);
const head = [
  `POST ${path} HTTP/1.1`,
  `host: ${host}`,
  "content-type: application/json",
  `authorization: Bearer ${key}`,
  `content-length: ${Buffer.byteLength(body)}`,
];
const request = Buffer.from(`${head.join("\r\n")}\r\n\r\n${body}`);
const warmMs = 1_000;
const startedAt = nowMs();
const until = startedAt + warmMs + seconds * 1_000;
let countedFrom = 0;
let answers = 0;

/** Where an answer ends in what has come so far; 0: it has not. */
function endOf(received) {
  const headEnd = received.indexOf("\r\n\r\n");
  if (headEnd < 0) return 0;
  const length = /content-length: (\d+)/i.exec(received.toString("latin1", 0, headEnd));
  const end = headEnd + 4 + Number(length?.[1] ?? 0);
  return received.length >= end ? end : 0;
}

function run() {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), noDelay: true });
    let received = Buffer.alloc(0);
    socket.on("error", reject);
    socket.on("connect", () => socket.write(request));
    socket.on("data", (chunk) => {
      received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
      const end = endOf(received);
      if (end === 0) return;
      if (received.toString("latin1", 9, 12) !== "201")
        return reject(new Error(received.toString("latin1", 0, 600)));
      received = received.subarray(end);
      const now = nowMs();
      if (now >= startedAt + warmMs) {
        countedFrom ||= now;
        answers++;
      }
      if (now < until) socket.write(request);
      else socket.end(resolve);
    });
  });
}

await Promise.all(Array.from({ length: connections }, run));
process.send({ perSecond: (answers * 1_000) / (nowMs() - countedFrom) });
process.disconnect();
