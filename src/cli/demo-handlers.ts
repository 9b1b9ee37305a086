// Handlers for whoever has none yet: `millrace worker --demo`.

import { systemClock } from "../runtime/clock.ts";
import { type AnyJobDefinition, defineJob } from "../worker/job-definition.ts";

const mostMs = 600_000;

/** Takes its time: as many milliseconds as the payload's `ms` says, or up to half a second. */
const dummy = defineJob({
  type: "dummy",
  async run({ payload, signal }) {
    const wanted = (payload as { readonly ms?: unknown } | null)?.ms;
    const ms = typeof wanted === "number" && wanted >= 0 ? wanted : 500 * Math.random();
    await systemClock.sleep(Math.min(ms, mostMs), signal);
    signal.throwIfAborted();
    return { sleptMs: Math.round(ms) };
  },
});

/** Gives back what it got. */
const echo = defineJob({ type: "echo", run: ({ payload }) => payload });

export const demoHandlers: readonly AnyJobDefinition[] = [dummy, echo];
