import { longestTimerMs } from "./clock.ts";

/** A sleep that others can end. A wake-up that comes while nobody sleeps ends the next sleep at once. */
export class WakeUp {
  #woken = false;
  #resolve: (() => void) | null = null;

  wake(): void {
    this.#woken = true;
    this.#resolve?.();
  }

  /** True when woken, false when the time ran out. */
  async sleep(ms: number): Promise<boolean> {
    if (!this.#woken) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#resolve = resolve;
        timer = setTimeout(resolve, Math.min(ms, longestTimerMs));
      });
      clearTimeout(timer);
      this.#resolve = null;
    }
    const woken = this.#woken;
    this.#woken = false;
    return woken;
  }
}
