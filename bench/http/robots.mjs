// What robots that wait feel, and what they cost.
import { Agent, request } from "node:http";
import { nowMs, sleep } from "../clock.mjs";

const agent = new Agent({ keepAlive: true, maxSockets: Number.POSITIVE_INFINITY });

function call(url, key, method, path, body) {
  return new Promise((resolve, reject) => {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = {
      authorization: `Bearer ${key}`,
      ...(text === undefined ? {} : { "content-type": "application/json" }),
    };
    const sent = request(new URL(path, url), { method, headers, agent }, (answer) => {
      const chunks = [];
      answer.on("data", (chunk) => chunks.push(chunk));
      answer.on("end", () => resolve({ status: answer.statusCode, text: chunks.join("") }));
    });
    sent.on("error", reject);
    sent.end(text);
  });
}

const metricOf = (text, name) => Number(new RegExp(`^${name} (.+)$`, "m").exec(text)?.[1]);

async function waiting(url, key, count) {
  for (;;) {
    const { text } = await call(url, key, "GET", "/metrics");
    if (metricOf(text, "millrace_robots_waiting") === count) return text;
    await sleep(5);
  }
}

/** One robot waits, one item is added: when both have their answers. */
export async function longPolls(url, key, samples) {
  const name = "polled";
  await call(url, key, "POST", "/api/queues", { name });
  const arrivalMs = [];
  const addMs = [];
  for (let i = 0; i < samples; i++) {
    const next = call(url, key, "GET", `/api/queue-items/next?queue_name=${name}&wait_seconds=20`);
    const arrived = next.then(({ status }) => ({ status, at: nowMs() }));
    await waiting(url, key, 1);
    const startedAt = nowMs();
    const { status } = await call(url, key, "POST", "/api/queue-items/add", { queue_name: name });
    addMs.push(nowMs() - startedAt);
    const item = await arrived;
    if (status !== 201 || item.status !== 200) throw new Error(`${status} ${item.status}`);
    arrivalMs.push(item.at - startedAt);
  }
  return { arrivalMs, addMs };
}

/** From one look to another, so that no part of an interval counts as a whole one. */
async function nextPoll(url, key) {
  const read = async () =>
    metricOf((await call(url, key, "GET", "/metrics")).text, "millrace_robot_polls_total");
  const before = await read();
  for (;;) {
    const polls = await read();
    if (polls !== before) return { polls, at: nowMs() };
    await sleep(5);
  }
}

/** How often the service looks for items, per second, while so many robots wait. */
export async function waitingRobots(url, key, robots, seconds) {
  const name = "silent";
  await call(url, key, "POST", "/api/queues", { name });
  const path = `/api/queue-items/next?queue_name=${name}&wait_seconds=${seconds + 15}`;
  const calls = Array.from({ length: robots }, () => call(url, key, "GET", path));
  const all = Promise.allSettled(calls);
  await waiting(url, key, robots);
  const first = await nextPoll(url, key);
  await sleep(seconds * 1_000);
  const last = await nextPoll(url, key);
  const perSecond = ((last.polls - first.polls) * 1_000) / (last.at - first.at);
  await all;
  agent.destroy();
  return perSecond;
}
