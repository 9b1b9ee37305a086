// What a process that stops does about calls that are not answered.

import type { Clock } from "../runtime/clock.ts";
import { isOverWithin } from "../runtime/is-over-within.ts";

export interface Server {
  readonly clock: Clock;
  readonly opened: { readonly answers: () => Promise<boolean>; readonly abandon: () => void };
}

/** By then anything that a process does beside its runs has been answered. */
const closeMs = 5_000;

/** One that does answer is at work: a vacuum takes its time. Otherwise nothing in this process would be answered. */
export async function closedBy(
  server: Server,
  closing: Promise<unknown>,
  isSilent = false,
): Promise<void> {
  const { clock, opened } = server;
  const isLate = isSilent || !(await isOverWithin(closing, closeMs, clock));
  if (isLate && !(await opened.answers())) opened.abandon();
  await closing;
}
