// Rate limits at the door: token buckets in the store, shared by all processes. Calls of one moment are
// asked for together, in a statement of their own and never in the caller's transaction. What a bucket
// cannot hold by now, going by an answer of the last second, is not asked for: refusals under overload
// cost next to nothing. What was not stored costs no token: see `charge`.

import { MillraceError } from "../domain/errors.ts";
import { admit, refilled, type Want, waitMs } from "../domain/token-bucket.ts";
import type { Clock } from "../runtime/clock.ts";
import type { FlowStore, Rate, TokenGrant } from "../store/flow.ts";
import type { Enqueued } from "../store/store.ts";
import { unstored } from "./door-charge.ts";

/** A bucket that a job draws from. */
export interface DoorBucket {
  readonly key: string;
  readonly rate: Rate;
  /** For people: whose limit it is. */
  readonly of: string;
}

/** One call: passes as a whole, is refused as a whole, or (`delays`) passes job by job, perhaps later. */
export interface DoorCall {
  readonly jobs: readonly (readonly DoorBucket[])[];
  readonly delays: boolean;
}

interface Waiter {
  readonly call: DoorCall;
  readonly want: Want;
  readonly resolve: (delaysMs: number[]) => void;
  readonly reject: (error: unknown) => void;
}

/** A bucket as it was at its last answer at best, and what is being asked of it. */
interface Known {
  readonly rate: Rate;
  tokens: number;
  atMs: number;
  asked: number;
}

const mostKnown = 10_000;
/** Others may have given tokens back since. */
const believedMs = 1_000;

export class Door {
  readonly #flow: FlowStore;
  readonly #clock: Clock;
  readonly #known = new Map<string, Known>();
  #waiters: Waiter[] = [];
  #unused = new Map<string, number>();
  #returning: (() => void)[] = [];
  #asking: Promise<void> | null = null;

  constructor(flow: FlowStore, clock: Clock) {
    this.#flow = flow;
    this.#clock = clock;
  }

  /** How long each job is to be delayed; RATE_LIMITED when the call is refused. */
  async pass(call: DoorCall): Promise<number[]> {
    const want = wantOf(call);
    if (!call.delays) {
      this.#refuseAtOnce(call, want);
      this.#expect(want, 1);
    }
    return new Promise((resolve, reject) => {
      this.#waiters.push({ call, want, resolve, reject });
      this.#asking ??= this.#askAll();
    });
  }

  /** Gives back the tokens of what `storing` does not store, before it is answered. */
  async charge(
    jobs: DoorCall["jobs"],
    storing: Promise<readonly Enqueued[]>,
  ): Promise<readonly Enqueued[]> {
    try {
      const answers = await storing;
      await this.#giveBack(unstored(jobs, answers));
      return answers;
    } catch (error) {
      await this.#giveBack(unstored(jobs, error));
      throw error;
    }
  }

  /** In turn with what is asked for: what is known of a bucket is from one moment. */
  async #giveBack(jobs: DoorCall["jobs"]): Promise<void> {
    if (jobs.length === 0) return;
    for (const [key, tokens] of wantOf({ jobs, delays: false }))
      this.#unused.set(key, (this.#unused.get(key) ?? 0) + tokens);
    await new Promise<void>((resolve) => {
      this.#returning.push(resolve);
      this.#asking ??= this.#askAll();
    });
  }

  #refuseAtOnce(call: DoorCall, want: Want): void {
    const atMs = this.#clock.monotonic();
    for (const bucket of bucketsOf(call)) {
      const cost = want.get(bucket.key) ?? 0;
      if (cost > bucket.rate.limit) throw tooMany(bucket, cost);
      const known = this.#known.get(bucket.key);
      if (known === undefined || atMs - known.atMs > believedMs) continue;
      const left = refilled(bucket.rate, known, atMs).tokens - known.asked;
      if (left < cost) throw limited(bucket, waitMs(bucket.rate, left, cost));
    }
  }

  #expect(want: Want, sign: 1 | -1): void {
    for (const [key, cost] of want) {
      const known = this.#known.get(key);
      if (known !== undefined) known.asked = Math.max(0, known.asked + sign * cost);
    }
  }

  async #askAll(): Promise<void> {
    await Promise.resolve();
    while (this.#waiters.length > 0 || this.#unused.size > 0) {
      await this.#returnUnused();
      const waiters = this.#waiters.splice(0);
      if (waiters.length === 0) continue;
      const known = new Set(this.#known.keys());
      try {
        await this.#ask(waiters);
      } catch (error) {
        for (const { reject } of waiters) reject(error);
      }
      // Only what was counted when it was asked for.
      for (const { call, want } of waiters)
        if (!call.delays) this.#expect(new Map([...want].filter(([key]) => known.has(key))), -1);
    }
    this.#asking = null;
  }

  async #returnUnused(): Promise<void> {
    const [unused, returning] = [this.#unused, this.#returning.splice(0)];
    if (unused.size === 0) return;
    this.#unused = new Map();
    try {
      await this.#flow.giveBackTokens(unused);
      for (const [key, tokens] of unused) {
        const known = this.#known.get(key);
        if (known !== undefined) known.tokens = Math.min(known.rate.limit, known.tokens + tokens);
      }
    } catch {
      // The refusal is what matters; the bucket fills again by itself.
    }
    for (const resolve of returning) resolve();
  }

  async #ask(waiters: readonly Waiter[]): Promise<void> {
    const atMs = this.#clock.monotonic();
    const requests = requestsOf(waiters);
    const grants = await this.#flow.takeTokens(requests);
    const refusing = waiters.filter(({ call }) => !call.delays);
    const granted = new Map([...grants].map(([key, grant]) => [key, grant.granted]));
    const { passes, unused } = admit(
      refusing.map(({ want }) => want),
      granted,
    );
    const rest = new Map([...unused].filter(([, tokens]) => tokens > 0));
    if (rest.size > 0) await this.#flow.giveBackTokens(rest);
    for (const { key, rate } of requests) {
      const tokens = (grants.get(key)?.tokens ?? 0) + (rest.get(key) ?? 0);
      // Filled since the question, not since the answer: rather too much than too little.
      this.#known.set(key, { rate, tokens, atMs, asked: this.#known.get(key)?.asked ?? 0 });
    }
    for (const [i, { call, want, resolve, reject }] of refusing.entries()) {
      if (passes[i] === true) resolve(call.jobs.map(() => 0));
      else reject(this.#refusal(call, want));
    }
    if (this.#known.size > mostKnown) this.#forgetFull();
    this.#delay(waiters, grants);
  }

  #refusal(call: DoorCall, want: Want): MillraceError {
    let worst: { bucket: DoorBucket; ms: number } | null = null;
    for (const bucket of bucketsOf(call)) {
      const tokens = this.#known.get(bucket.key)?.tokens ?? 0;
      const ms = waitMs(bucket.rate, tokens, want.get(bucket.key) ?? 1);
      if (worst === null || ms > worst.ms) worst = { bucket, ms };
    }
    return worst === null ? new MillraceError("RATE_LIMITED") : limited(worst.bucket, worst.ms);
  }

  #forgetFull(): void {
    const now = this.#clock.monotonic();
    for (const [key, known] of this.#known) {
      const { tokens } = refilled(known.rate, known, now);
      if (known.asked === 0 && tokens >= known.rate.limit) this.#known.delete(key);
    }
  }

  /** Tokens were taken in advance: each job waits until its own would have been there. */
  #delay(waiters: readonly Waiter[], grants: ReadonlyMap<string, TokenGrant>): void {
    const delaying = waiters.filter(({ call }) => call.delays);
    const later = new Map<string, number>();
    for (const { want } of delaying)
      for (const [key, cost] of want) later.set(key, (later.get(key) ?? 0) + cost);
    for (const { call, resolve } of delaying) {
      resolve(
        call.jobs.map((buckets) =>
          buckets.reduce((most, { key, rate }) => {
            const left = (later.get(key) ?? 1) - 1;
            later.set(key, left);
            return Math.max(most, waitMs(rate, (grants.get(key)?.tokens ?? 0) + left, 0));
          }, 0),
        ),
      );
    }
  }
}

function* bucketsOf({ jobs }: DoorCall): Iterable<DoorBucket> {
  const seen = new Set<string>();
  for (const bucket of jobs.flat()) {
    if (seen.has(bucket.key)) continue;
    seen.add(bucket.key);
    yield bucket;
  }
}

function wantOf({ jobs }: DoorCall): Want {
  const want = new Map<string, number>();
  for (const { key } of jobs.flat()) want.set(key, (want.get(key) ?? 0) + 1);
  return want;
}

function requestsOf(waiters: readonly Waiter[]) {
  const requests = new Map<string, { key: string; rate: Rate; wanted: number; owed: number }>();
  for (const { call, want } of waiters) {
    for (const { key, rate } of bucketsOf(call)) {
      const request = requests.get(key) ?? { key, rate, wanted: 0, owed: 0 };
      request[call.delays ? "owed" : "wanted"] += want.get(key) ?? 0;
      requests.set(key, request);
    }
  }
  return [...requests.values()];
}

const limited = ({ of, rate }: DoorBucket, ms: number) => {
  const retryAfterMs = Math.max(1, Math.ceil(ms));
  return new MillraceError(
    "RATE_LIMITED",
    `The rate limit of ${of} is used up; try again in ${retryAfterMs} ms.`,
    { details: { retryAfterMs, limit: rate.limit, windowMs: rate.windowMs } },
  );
};

const tooMany = ({ of, rate }: DoorBucket, wanted: number) =>
  new MillraceError(
    "RATE_LIMITED",
    `${wanted} jobs at once are more than the rate limit of ${of} ever lets in; send fewer at a time.`,
    {
      details: {
        retryAfterMs: rate.windowMs,
        limit: rate.limit,
        windowMs: rate.windowMs,
        wanted,
      },
    },
  );
