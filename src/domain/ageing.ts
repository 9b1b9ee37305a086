// Ageing: every unit of weight is worth `stepMs` of waiting. Whoever waited longer than the difference of
// the weights is not overtaken any more.

export interface Aged {
  readonly weight: number;
  readonly readyAtMs: number;
}

/** The order is static: time passes for all alike, so nothing has to be sorted again. */
export const agedKey = ({ weight, readyAtMs }: Aged, stepMs: number): number =>
  readyAtMs + weight * stepMs;

/** Nobody is overtaken by a job that became ready more than this later. */
export const overtakenWithinMs = (weight: number, byWeight: number, stepMs: number): number =>
  Math.max(0, weight - byWeight) * stepMs;
