/** The other side did not answer in time. */
export class Silence extends Error {}

export async function withDeadline<R>(answer: Promise<R>, limitMs: number): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    // An answer may have come while this process was busy: it is read before the immediate.
    const giveUp = () => reject(new Silence(`no answer in ${limitMs} ms`));
    timer = setTimeout(() => setImmediate(giveUp), limitMs);
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
