import { MillraceError } from "../domain/errors.ts";
import type { Clock } from "../runtime/clock.ts";
import { wasBusy } from "./was-busy.ts";

export interface Bounds<R> {
  readonly clock: Clock;
  readonly timeoutMs: number;
  /** Ends the wait early. */
  readonly signal?: AbortSignal;
  /** Gets an answer that came too late. */
  readonly late?: (answer: R) => void;
}

/** Rejects with TIMEOUT when the answer takes longer. */
export function within<R>(answer: Promise<R>, bounds: Bounds<R>): Promise<R> {
  const { clock, timeoutMs, signal, late } = bounds;
  return new Promise((resolve, reject) => {
    const over = new AbortController();
    let isOver = false;
    const end = (): boolean => {
      if (isOver) return false;
      isOver = true;
      signal?.removeEventListener("abort", giveUp);
      over.abort();
      return true;
    };
    const giveUp = () => {
      if (end()) reject(new MillraceError("TIMEOUT", `No answer within ${timeoutMs} ms.`));
    };
    answer.then(
      (value) => (end() ? resolve(value) : late?.(value)),
      (error) => end() && reject(error),
    );
    signal?.addEventListener("abort", giveUp, { once: true });
    const wait = async (): Promise<void> => {
      const dueAt = clock.monotonic() + timeoutMs;
      await clock.sleep(timeoutMs, over.signal);
      if (isOver) return;
      // While this process was busy no answer was read: that is not the other's silence.
      if (wasBusy(clock.monotonic() - dueAt, timeoutMs)) await wait();
      else giveUp();
    };
    void wait();
  });
}
