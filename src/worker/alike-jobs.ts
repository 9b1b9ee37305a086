// Jobs of one handover: they differ in id, place and payload only, and share all the rest.

import type { ClaimedJob, JobMeta, Place } from "../domain/job.ts";
import type { Timeline } from "../domain/timeline.ts";
import type { Token } from "../domain/token.ts";

export const noMeta: JobMeta = Object.freeze({});
export const noTimeline: Timeline = Object.freeze([]);

/** What they share. */
export interface Alike {
  readonly token: Token;
  readonly type: string;
  readonly tenant: string;
  readonly queueId: number;
  readonly weight: number;
  readonly maxAttempts: number;
  readonly at: Date;
}

/** `common` is the first line of their text. */
export const alikeOf = (common: string, claimId: string, at: Date): Alike => ({
  ...JSON.parse(common),
  ...{ token: { claimId, claimNo: 1 }, at },
});

export abstract class AlikeJob implements ClaimedJob, Place {
  readonly id: string;
  readonly tid: string;
  readonly seq: number;
  readonly #alike: Alike;

  constructor(id: string, tid: string, seq: number, alike: Alike) {
    this.id = id;
    this.tid = tid;
    this.seq = seq;
    this.#alike = alike;
  }

  abstract get payload(): unknown;

  get place(): Place {
    return this;
  }

  get token(): Token {
    return this.#alike.token;
  }

  get type(): string {
    return this.#alike.type;
  }

  get tenant(): string {
    return this.#alike.tenant;
  }

  get queueId(): number {
    return this.#alike.queueId;
  }

  get weight(): number {
    return this.#alike.weight;
  }

  get maxAttempts(): number {
    return this.#alike.maxAttempts;
  }

  get createdAt(): Date {
    return this.#alike.at;
  }

  get readyAt(): Date {
    return this.#alike.at;
  }

  get startedAt(): Date {
    return this.#alike.at;
  }

  get correlationId(): string {
    return this.id;
  }

  get idempotencyKey(): string {
    return this.id;
  }

  get attempt(): number {
    return 1;
  }

  get crashCount(): number {
    return 0;
  }

  get maxRuntimeMs(): null {
    return null;
  }

  get reference(): null {
    return null;
  }

  get meta(): JobMeta {
    return noMeta;
  }

  get timeline(): Timeline {
    return noTimeline;
  }
}

/** One whose payload has come along. */
export class ShortJob extends AlikeJob {
  readonly payload: unknown;

  constructor(id: string, tid: string, seq: number, alike: Alike, payload: unknown) {
    super(id, tid, seq, alike);
    this.payload = payload;
  }
}

/** One whose payload was read. Until it runs that is but a text. */
export class LongJob extends AlikeJob {
  readonly #text: string;

  constructor(id: string, tid: string, seq: number, alike: Alike, text: string) {
    super(id, tid, seq, alike);
    this.#text = text;
  }

  get payload(): unknown {
    return JSON.parse(this.#text);
  }
}
