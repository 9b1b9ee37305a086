/**
 * Runs with a signal that aborts as soon as one of these does. Unlike AbortSignal.any it leaves nothing
 * behind on signals that outlive the call.
 */
export async function withAnySignal<R>(
  signals: readonly (AbortSignal | undefined)[],
  run: (signal: AbortSignal) => Promise<R>,
): Promise<R> {
  const either = new AbortController();
  const abort = () => either.abort();
  for (const signal of signals) {
    if (signal?.aborted) abort();
    signal?.addEventListener("abort", abort, { once: true });
  }
  try {
    return await run(either.signal);
  } finally {
    for (const signal of signals) signal?.removeEventListener("abort", abort);
  }
}
