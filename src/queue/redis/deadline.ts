import { wasBusy } from "../was-busy.ts";

/** The other side did not answer in time. */
export class Silence extends Error {}

export async function withDeadline<R>(answer: Promise<R>, limitMs: number): Promise<R> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const wait = () => {
      const dueAt = performance.now() + limitMs;
      timer = setTimeout(() => {
        // While this process was busy nothing was sent and no answer read: that is not the other's silence.
        if (wasBusy(performance.now() - dueAt, limitMs)) wait();
        else setImmediate(() => reject(new Silence(`no answer in ${limitMs} ms`)));
      }, limitMs);
    };
    wait();
  });
  try {
    return await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
