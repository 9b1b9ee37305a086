// Traces, if the process has an OpenTelemetry SDK. Without one nothing is loaded: an SDK announces itself
// in a global place that the API's package reserves, and that is all we look at.

import type { Events } from "./events.ts";
import type { Tracing } from "./tracing.ts";

const announced = Symbol.for("opentelemetry.js.api.1");

/** Spans of settles end with these events. null: there is no SDK. It has to be set up before, as all of OpenTelemetry wants it. */
export async function loadTracing(events?: Events): Promise<Tracing | null> {
  const global = (globalThis as Record<symbol, { trace?: unknown } | undefined>)[announced];
  if (global?.trace === undefined) return null;
  const [api, { OpenTelemetryTracing }] = await Promise.all([
    import("@opentelemetry/api"),
    import("./opentelemetry.ts"),
  ]);
  return new OpenTelemetryTracing(api, events);
}
