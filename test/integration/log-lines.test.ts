// What is written about jobs and requests can be followed by its ids, and holds nobody's data.

import { randomUUID } from "node:crypto";
import { Writable } from "node:stream";
import { pino } from "pino";
import { expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { defineJob, type Millrace, NonRetryableError, RetryableError } from "../../src/index.ts";
import { Events } from "../../src/runtime/events.ts";
import { logEvents } from "../../src/runtime/log.ts";
import { adminKey, send } from "../support/http.ts";
import { newQueue, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
/** It looks like nothing that any rule would refuse. */
const planted = `planted ${randomUUID().slice(0, 8)} words`;

interface Line extends Record<string, unknown> {
  readonly msg: string;
}

async function logged(
  options: { schema?: string } = {},
): Promise<{ millrace: Millrace; lines: Line[]; text: () => string }> {
  const written: string[] = [];
  const to = new Writable({
    write(chunk, _, done) {
      written.push(String(chunk));
      done();
    },
  });
  const millrace = await instances.connect({
    ...options,
    logLevel: "trace",
    log: pino({ level: "trace" }, to),
  });
  return {
    millrace,
    get lines() {
      return written.map((line) => JSON.parse(line) as Line);
    },
    text: () => written.join(""),
  };
}

test("lines about jobs name job and correlation, those about requests the request; payloads are in none", async () => {
  const log = await logged();
  const { millrace } = log;
  const server = new HttpServer({ millrace, port: 0, adminKey });
  await server.start();
  const call = (method: string, path: string, body?: unknown) =>
    send(server.url, method, path, { body });
  const queue = newQueue();
  const job = defineJob({
    ...{ type: "logged", queue, retry: { baseMs: { retryable: 1 } } },
    run({ payload, attempt, log: own }) {
      own.info("the handler's own line");
      if (attempt === 1) throw new RetryableError("once more");
      if ((payload as { fails?: boolean }).fails) throw new NonRetryableError("for good");
      return { result: planted };
    },
  });
  await millrace.work([job]);
  const correlationId = randomUUID();
  const { id } = await millrace.enqueue(job, { note: planted }, { correlationId });
  await millrace.waitFor(id);
  const large = {
    note: planted,
    fails: true,
    fill: Array.from({ length: 400 }, (_, n) => ({ order: n, note: "beside the door" })),
  };
  const over = await call("POST", "/api/jobs", { type: "logged", queue, payload: large });
  expect(over.status).toBe(201);
  await millrace.waitFor(over.body.id);
  await call("POST", "/api/jobs", `{"type": "logged", "payload": "${planted}`);
  await call("POST", "/api/jobs", { type: planted.repeat(20), payload: { password: planted } });
  await call("GET", `/api/jobs?reference=${encodeURIComponent(planted)}&limit=x`);
  const items = newQueue();
  await call("POST", "/api/queues", { name: items });
  await call("POST", "/api/queue-items/add", { queue_name: items, payload: planted });
  const { body: item } = await call("GET", `/api/queue-items/next?queue_name=${items}`);
  const end = { status: "FAILED", token: item.token, result: planted, error_message: "no page" };
  await call("PUT", `/api/queue-items/${item.id}`, end);
  await until("both jobs' ends are told", () =>
    [id, over.body.id].every((one) =>
      log.lines.some(
        ({ msg, id: of, outcome }) =>
          msg === "job.settled" && of === one && (outcome === "completed" || outcome === "dead"),
      ),
    ),
  );
  await server.stop();

  const { lines } = log;
  const of = (start: string) => lines.filter(({ msg }) => msg.startsWith(start));
  const about = of("job.").filter(({ msg }) => msg !== "job.payload_large");
  expect(new Set(about.map(({ msg }) => msg))).toEqual(
    new Set(["job.enqueued", "job.started", "job.settled"]),
  );
  for (const line of about) {
    expect(line, line.msg).toMatchObject({
      ...{ id: expect.any(String), correlationId: expect.any(String), type: expect.any(String) },
    });
    if (line.id === id) expect(line.correlationId, line.msg).toBe(correlationId);
  }
  expect(of("job.payload_large")).toHaveLength(1);
  expect(of("the handler's own line").length).toBeGreaterThan(0);
  for (const line of of("the handler's own line"))
    expect(line).toMatchObject({ job: expect.any(String), correlationId: expect.any(String) });
  expect(of("http.").length).toBeGreaterThan(5);
  for (const line of of("http.")) expect(line.request, line.msg).toMatch(/^[0-9a-f-]{36}$/);
  expect(of("robot.").map(({ msg }) => msg)).toEqual(["robot.leased", "robot.settled"]);
  for (const line of of("robot.")) expect(line.id).toBe(item.id);
  expect(log.text()).not.toContain(planted);
  expect(log.text()).not.toContain(encodeURIComponent(planted));
  expect(log.text()).not.toContain(adminKey);
});

test("a line says each thing once, a clean stop is no warning, and a first start is one line", () => {
  const written: string[] = [];
  const to = new Writable({
    write(chunk, _, done) {
      written.push(String(chunk));
      done();
    },
  });
  const emitAt = (level: string) => {
    written.length = 0;
    const events = new Events();
    logEvents(events, pino({ name: "millrace", level }, to), level);
    events.emit("migration.applied", { version: 1, name: "core" });
    events.emit("trigger.missed", { id: "t", name: "nightly", tenant: "a", from: new Date(0) });
    events.emit("leader.lost", { term: 1, reason: "resigned" });
    events.emit("leader.lost", { term: 2, reason: "not_renewed" });
    return written.map((line) => JSON.parse(line) as Line);
  };
  const all = emitAt("debug");
  expect(written.map((line) => line.split('"name":').length - 1)).toEqual([1, 1, 1, 1]);
  expect(all).toMatchObject([
    { name: "millrace", migration: "core", msg: "migration.applied", level: 20 },
    { name: "millrace", trigger: "nightly", msg: "trigger.missed", level: 40 },
    { msg: "leader.lost", reason: "resigned", level: 30 },
    { msg: "leader.lost", reason: "not_renewed", level: 40 },
  ]);
  expect(emitAt("info").map(({ msg }) => msg)).not.toContain("migration.applied");
  expect(emitAt("warn").map(({ reason }) => reason)).toEqual([undefined, "not_renewed"]);
});

test("the start tells how many migrations it has applied", async () => {
  const log = await logged({ schema: "first_start" });
  const [started] = log.lines.filter(({ msg }) => msg === "millrace.started");
  const applied = log.lines.filter(({ msg }) => msg === "migration.applied");
  expect(applied.length).toBeGreaterThan(10);
  expect(started).toMatchObject({ migrations: applied.length });
});
