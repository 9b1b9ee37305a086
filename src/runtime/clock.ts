/** Longer than this a timer of Node's ends at once instead. */
export const longestTimerMs = 2_147_483_647;

/** Local time: for pacing and reporting only. What decides is always the database's now(). */
export interface Clock {
  now(): Date;
  /** Milliseconds that never go back. */
  monotonic(): number;
  /** Resolves after the time, or at once when the signal aborts. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

export const systemClock: Clock = {
  now: () => new Date(),
  monotonic: () => performance.now(),
  sleep: (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const done = () => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, Math.min(ms, longestTimerMs));
      signal?.addEventListener("abort", done, { once: true });
    }),
};
