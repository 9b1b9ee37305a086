// Jobs that become dead letters at once, with an error that a terminal must not obey.

import { defineJob, type Millrace, NonRetryableError } from "../../src/index.ts";

const hostile = "no \u001b]0;pwned\u0007 account \u202e1\nsecond \u009b31m line";

export const pay = defineJob({
  type: "pay",
  queue: "money",
  run() {
    throw new NonRetryableError(hostile);
  },
});

/** Needs a worker for `pay`. */
export async function die(
  millrace: Millrace,
  count: number,
  tenant = "default",
): Promise<string[]> {
  const made = await millrace.enqueueMany(
    pay,
    Array.from({ length: count }, (_, n) => ({ n, note: hostile })),
    { tenant },
  );
  for (const { id } of made) await millrace.waitFor(id);
  return made.map(({ id }) => id);
}

/** Nothing that a terminal obeys, but for the ends of our own lines. */
export const obeyed = /[^\P{Cc}\n]|\p{Cf}/u;
