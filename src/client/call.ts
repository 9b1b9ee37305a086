// One call of enqueue, until it is answered.

import type { Enqueued, Flushed, NewJob } from "../store/store.ts";

export interface Call {
  readonly jobs: readonly NewJob[];
  readonly resolve: (answers: Enqueued[]) => void;
  readonly reject: (error: unknown) => void;
  readonly giveUpAt: number;
}

export function answer(calls: readonly Call[], all: Flushed["answers"]): void {
  let from = 0;
  for (const call of calls) {
    const only = calls.length === 1 && call.jobs.length === all.length;
    const answers = only ? all : all.slice(from, from + call.jobs.length);
    from += call.jobs.length;
    const refused = answers.find((one) => one instanceof Error);
    if (refused === undefined) call.resolve(answers as Enqueued[]);
    else call.reject(refused);
  }
}
