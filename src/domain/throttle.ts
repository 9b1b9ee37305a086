// At most so many starts in any window. Starts are counted by slices of a tenth of the window; the last
// eleven slices cover every window that ends now, so no window sees more, and at worst a tenth of the
// rate is given away. throttle_gate in SQL does the same.

export interface Throttle {
  readonly limit: number;
  readonly windowMs: number;
}

const slices = 10;

const sliceMs = ({ windowMs }: Throttle): number => Math.ceil(windowMs / slices);

export const sliceAt = (throttle: Throttle, nowMs: number): number =>
  Math.floor(nowMs / sliceMs(throttle));

/** How many may start now, or when one may: `starts` are counts by slice. */
export function throttleRoom(
  throttle: Throttle,
  starts: ReadonlyMap<number, number>,
  nowMs: number,
): { readonly room: number; readonly freeAtMs: number | null } {
  const oldest = sliceAt(throttle, nowMs) - slices;
  const recent = [...starts].filter(([slice]) => slice >= oldest).sort(([a], [b]) => b - a);
  let sum = 0;
  for (const [slice, count] of recent) {
    sum += count;
    if (sum >= throttle.limit)
      return { room: 0, freeAtMs: (slice + slices + 1) * sliceMs(throttle) };
  }
  return { room: throttle.limit - sum, freeAtMs: null };
}
