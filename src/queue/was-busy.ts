/** A timer that fires so late was held up by this process itself, or by a machine that stood still. */
export const wasBusy = (lateMs: number, limitMs: number): boolean =>
  lateMs > Math.max(20, limitMs / 4);
