// A token bucket holds at most `limit` tokens and is filled at `limit` per window. So at most twice the
// limit passes in any one window: a full bucket, and what flows in meanwhile.

export interface Rate {
  readonly limit: number;
  readonly windowMs: number;
}

export interface Bucket {
  readonly tokens: number;
  readonly atMs: number;
}

export const fullBucket = ({ limit }: Rate, nowMs: number): Bucket => ({
  tokens: limit,
  atMs: nowMs,
});

/** Time that goes backwards fills nothing. */
export function refilled(rate: Rate, bucket: Bucket, nowMs: number): Bucket {
  const ms = Math.max(0, nowMs - bucket.atMs);
  const tokens = Math.min(rate.limit, bucket.tokens + (ms * rate.limit) / rate.windowMs);
  return { tokens, atMs: Math.max(nowMs, bucket.atMs) };
}

/** Takes as many whole tokens as there are, at most `wanted`, and `owed` whether they are there or not. */
export function take(
  bucket: Bucket,
  wanted: number,
  owed: number,
): { readonly granted: number; readonly bucket: Bucket } {
  const granted = Math.min(wanted, Math.max(0, Math.floor(bucket.tokens)));
  return { granted, bucket: { ...bucket, tokens: bucket.tokens - granted - owed } };
}

/** Until a bucket with so many tokens holds so many. */
export const waitMs = (rate: Rate, tokens: number, wanted: number): number =>
  Math.max(0, Math.ceil(((wanted - tokens) * rate.windowMs) / rate.limit));

/** Tokens of several buckets, all of them or none. */
export type Want = ReadonlyMap<string, number>;

/** Who of these may pass, one after the other, and what nobody has used. */
export function admit(
  wants: readonly Want[],
  granted: ReadonlyMap<string, number>,
): { readonly passes: readonly boolean[]; readonly unused: ReadonlyMap<string, number> } {
  const unused = new Map(granted);
  const passes = wants.map((want) => {
    const enough = [...want].every(([bucket, cost]) => (unused.get(bucket) ?? 0) >= cost);
    if (enough)
      for (const [bucket, cost] of want) unused.set(bucket, (unused.get(bucket) ?? 0) - cost);
    return enough;
  });
  return { passes, unused };
}
