// Traces with the real SDK: one from the enqueue through the run to the settle, whoever does which.

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { context, SpanKind, SpanStatusCode, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeEach, describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { defineJob, NonRetryableError, RetryableError } from "../../src/index.ts";
import { adminKey, send } from "../support/http.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { until } from "../support/until.ts";

const exporter = new InMemorySpanExporter();
const provider = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
trace.setGlobalTracerProvider(provider);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
const tracer = trace.getTracer("test");

const instances = useMillrace();
beforeEach(() => exporter.reset());
afterAll(async () => {
  await provider.shutdown();
  trace.disable();
  context.disable();
});

const named = (name: string) => exporter.getFinishedSpans().filter((span) => span.name === name);
const ended = (name: string, count = 1) =>
  until(`${count} of ${name} have ended`, () => named(name).length >= count && named(name));
const parentOf = (span: ReadableSpan | undefined) => span?.parentSpanContext?.spanId;

describe("a job that is enqueued inside a span", () => {
  test("carries the trace to its run and its settle, in another instance's hands too", async () => {
    const worker = await instances.connect();
    const job = defineJob({
      ...{ type: "traced", queue: newQueue() },
      run: async () => {
        await Promise.resolve();
        tracer.startSpan("inside the handler").end();
      },
    });
    await worker.work([job]);
    const root = tracer.startSpan("request");
    const { id } = await context.with(trace.setSpan(context.active(), root), () =>
      instances.millrace.enqueue(job, { secret: 1 }),
    );
    root.end();
    const [settle] = await ended("millrace.settle");
    const [[enqueue], [run], [inside]] = [
      ...[named("millrace.enqueue"), named("millrace.run"), named("inside the handler")],
    ] as [ReadableSpan[], ReadableSpan[], ReadableSpan[]];
    const { traceId, spanId } = root.spanContext();
    for (const span of [enqueue, run, settle, inside])
      expect(span?.spanContext().traceId).toBe(traceId);
    expect(parentOf(enqueue)).toBe(spanId);
    expect(parentOf(run)).toBe(enqueue?.spanContext().spanId);
    expect(parentOf(settle)).toBe(run?.spanContext().spanId);
    expect(parentOf(inside)).toBe(run?.spanContext().spanId);
    expect([enqueue?.kind, run?.kind]).toEqual([SpanKind.PRODUCER, SpanKind.CONSUMER]);
    expect(run?.attributes).toMatchObject({
      "messaging.message.id": id,
      "millrace.job.type": "traced",
      "millrace.outcome": "completed",
    });
    expect(settle?.attributes["millrace.outcome"]).toBe("completed");
    expect(JSON.stringify([enqueue, run, settle].map((span) => span?.attributes))).not.toContain(
      "secret",
    );
  });

  test("keeps it across retries, and says how each run failed", async () => {
    const job = defineJob({
      ...{ type: "traced.twice", queue: newQueue(), retry: { baseMs: { retryable: 1 } } },
      run: ({ attempt }) => {
        throw attempt === 1 ? new RetryableError("again") : new NonRetryableError("never");
      },
    });
    await instances.work([job]);
    const root = tracer.startSpan("request");
    await context.with(trace.setSpan(context.active(), root), () =>
      instances.millrace.enqueueMany(job, [{}]),
    );
    root.end();
    const runs = await ended("millrace.run", 2);
    const settles = await ended("millrace.settle", 2);
    expect(runs.map(({ attributes }) => attributes["error.type"])).toEqual([
      ...["retryable", "non_retryable"],
    ]);
    expect(runs.every(({ status }) => status.code === SpanStatusCode.ERROR)).toBe(true);
    expect(settles.map(({ attributes }) => attributes["millrace.outcome"])).toEqual([
      ...["retried", "dead"],
    ]);
    const { traceId } = root.spanContext();
    for (const span of [...runs, ...settles]) expect(span.spanContext().traceId).toBe(traceId);
  });

  test("says of a refusal why, by its code", async () => {
    const queue = newQueue();
    await instances.millrace.configureQueue(queue, { capacity: 0 });
    const root = tracer.startSpan("request");
    const refused = await refusal(
      context.with(trace.setSpan(context.active(), root), () =>
        instances.millrace.enqueue(defineJob({ type: "full", queue }), 1),
      ),
    );
    root.end();
    expect(refused.code).toBe("QUEUE_FULL");
    const [span] = await ended("millrace.enqueue");
    expect(span?.attributes["error.type"]).toBe("QUEUE_FULL");
  });
});

test("a job that is enqueued outside of every span carries nothing, and its run is a trace of its own", async () => {
  const job = defineJob({ type: "untraced", queue: newQueue(), run: () => {} });
  await instances.work([job]);
  const { id } = await instances.millrace.enqueue(job, 1);
  const [run] = await ended("millrace.run");
  expect(parentOf(run)).toBeUndefined();
  expect(named("millrace.enqueue")).toEqual([]);
  expect((await instances.millrace.get(id))?.meta).toEqual({});
});

test("a request's traceparent is honoured, and a malformed one is not", async () => {
  const { millrace } = instances;
  const server = new HttpServer({ millrace, port: 0, adminKey });
  await server.start();
  try {
    const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
    const body = { type: "over.http", queue: newQueue() };
    const post = (traceparent: string) =>
      send(server.url, "POST", "/api/jobs", { body, headers: { traceparent, tracestate: "a=1" } });
    const { id } = (await post(`00-${traceId}-00f067aa0ba902b7-01`)).body;
    const [span] = await ended("millrace.enqueue");
    expect([span?.spanContext().traceId, parentOf(span)]).toEqual([traceId, "00f067aa0ba902b7"]);
    expect((await millrace.get(id))?.meta).toEqual({
      traceparent: `00-${traceId}-${span?.spanContext().spanId}-01`,
      tracestate: "a=1",
    });
    for (const wrong of [
      "",
      "00-0-0-0",
      `00-${"0".repeat(32)}-00f067aa0ba902b7-01`,
      "x".repeat(99),
    ])
      expect((await post(wrong)).status).toBe(201);
    expect(named("millrace.enqueue")).toHaveLength(1);
  } finally {
    await server.stop();
  }
});

describe("without an SDK", () => {
  const program = join(import.meta.dirname, "..", "processes", "loaded-modules.mjs");
  const loaded = async (...args: string[]): Promise<string[]> => {
    const env = { ...process.env, DATABASE_URL: instances.url };
    const { stdout } = await promisify(execFile)(process.execPath, [program, ...args], { env });
    const { result, packages } = JSON.parse(stdout);
    expect(result).toBe("done");
    return packages;
  };

  test("nothing of OpenTelemetry is loaded, and with one it is", async () => {
    const without = await loaded();
    expect(without).toContain("pg");
    expect(without.filter((name) => name.startsWith("@opentelemetry"))).toEqual([]);
    expect(await loaded("with-sdk")).toContain("@opentelemetry/api");
  });
});
