// Spans of OpenTelemetry: millrace.enqueue → millrace.run → millrace.settle, in one trace. Attributes name
// the job; payloads, results and error texts are in none.

import type * as Api from "@opentelemetry/api";
import type { ClaimedJob } from "../domain/job.ts";
import type { Outcome } from "../domain/outcome.ts";
import type { EventMap, Events } from "./events.ts";
import type { EnqueueSpan, TraceContext, Tracing } from "./tracing.ts";

const system = { "messaging.system": "millrace" };
const traceparentShape = /^00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/;
const keyOf = ({ id, attempt }: { id: string; attempt: number }) => `${id}/${attempt}`;

export class OpenTelemetryTracing implements Tracing {
  readonly #api: typeof Api;
  readonly #settling = new Map<string, Api.Span>();

  constructor(api: typeof Api, events: Events | undefined) {
    this.#api = api;
    events?.on("job.settled", (event) => this.#settled(event, event.outcome.kind));
    events?.on("job.settle_refused", (event) => this.#settled(event, "refused"));
  }

  async enqueue<T>(
    { type, queue, jobs }: EnqueueSpan,
    work: (carried: TraceContext | undefined) => Promise<T>,
  ): Promise<T> {
    const { context, trace, SpanKind } = this.#api;
    if (trace.getActiveSpan() === undefined) return work(undefined);
    const span = this.#tracer.startSpan("millrace.enqueue", {
      kind: SpanKind.PRODUCER,
      attributes: {
        ...system,
        "messaging.operation.type": "send",
        "messaging.destination.name": queue,
        "messaging.batch.message_count": jobs,
        "millrace.job.type": type,
      },
    });
    try {
      const inside = trace.setSpan(context.active(), span);
      return await context.with(inside, () => work(carriedBy(span.spanContext())));
    } catch (error) {
      this.#fail(span, codeOf(error));
      throw error;
    } finally {
      span.end();
    }
  }

  run(job: ClaimedJob, work: () => Outcome | Promise<Outcome>): Outcome | Promise<Outcome> {
    const { context, trace, ROOT_CONTEXT, SpanKind } = this.#api;
    const parent = this.#extract(ROOT_CONTEXT, job.meta.traceparent, job.meta.tracestate);
    const options = { kind: SpanKind.CONSUMER, attributes: attributesOf(job) };
    const span = this.#tracer.startSpan("millrace.run", options, parent ?? ROOT_CONTEXT);
    const inside = trace.setSpan(parent ?? ROOT_CONTEXT, span);
    const ended = (outcome: Outcome) => this.#ended(job, outcome, span, inside);
    const outcome = context.with(inside, work);
    return outcome instanceof Promise ? outcome.then(ended) : ended(outcome);
  }

  within<T>(headers: Readonly<Record<string, unknown>>, work: () => T): T {
    const { context, trace } = this.#api;
    if (trace.getActiveSpan() !== undefined) return work();
    const { traceparent, tracestate } = headers;
    const parent = this.#extract(context.active(), traceparent, tracestate);
    return parent === null ? work() : context.with(parent, work);
  }

  get #tracer(): Api.Tracer {
    return this.#api.trace.getTracer("millrace");
  }

  /** The executor never rejects: how the run ended is its outcome. */
  #ended(job: ClaimedJob, outcome: Outcome, span: Api.Span, inside: Api.Context): Outcome {
    span.setAttribute("millrace.outcome", outcome.kind);
    if ("error" in outcome) this.#fail(span, outcome.error.class);
    span.end();
    const options = { attributes: attributesOf(job) };
    this.#settling.set(keyOf(job), this.#tracer.startSpan("millrace.settle", options, inside));
    return outcome;
  }

  #settled(event: EventMap["job.settle_repeated"] | EventMap["job.settled"], how: string): void {
    const span = this.#settling.get(keyOf(event));
    if (span === undefined) return;
    this.#settling.delete(keyOf(event));
    span.setAttribute("millrace.outcome", how);
    if (how === "refused") this.#fail(span, "STALE_TOKEN");
    span.end();
  }

  #fail(span: Api.Span, type: string): void {
    span.setAttribute("error.type", type);
    span.setStatus({ code: this.#api.SpanStatusCode.ERROR });
  }

  #extract(into: Api.Context, traceparent: unknown, tracestate: unknown): Api.Context | null {
    const found = typeof traceparent === "string" ? traceparentShape.exec(traceparent) : null;
    const [, traceId = "", spanId = "", flags = "00"] = found ?? [];
    const spanContext: Api.SpanContext = {
      ...{ traceId, spanId, isRemote: true, traceFlags: Number.parseInt(flags, 16) },
      ...(typeof tracestate === "string" && tracestate !== ""
        ? { traceState: this.#api.createTraceState(tracestate) }
        : {}),
    };
    if (!this.#api.isSpanContextValid(spanContext)) return null;
    return this.#api.trace.setSpanContext(into, spanContext);
  }
}

function carriedBy({ traceId, spanId, traceFlags, traceState }: Api.SpanContext): TraceContext {
  const flags = traceFlags.toString(16).padStart(2, "0");
  const state = traceState?.serialize();
  return {
    traceparent: `00-${traceId}-${spanId}-${flags}`,
    // Longer than this it may be cut, says the standard; ours is left out.
    ...(state === undefined || state === "" || state.length > 512 ? {} : { tracestate: state }),
  };
}

const attributesOf = ({ id, type, tenant, attempt, correlationId }: ClaimedJob) => ({
  ...system,
  "messaging.operation.type": "process",
  "messaging.message.id": id,
  "messaging.message.conversation_id": correlationId,
  "millrace.job.type": type,
  "millrace.job.attempt": attempt,
  "millrace.tenant": tenant,
});

const codeOf = (error: unknown): string =>
  error instanceof Error && "code" in error ? String(error.code) : "unknown";
