// One connection that is told what happens.

import { PassThrough } from "node:stream";
import type { StoredEvent } from "../store/event.ts";
import type { QueueCounts } from "../store/queue.ts";
import { type Identity, mayCall } from "./identity.ts";

export interface CountedQueue {
  readonly id: number;
  readonly tenant: string;
  readonly name: string;
  readonly counts: QueueCounts;
}

interface StreamOptions {
  readonly identity: Identity;
  /** undefined: all of them. */
  readonly kinds: ReadonlySet<string> | undefined;
  /** Is whoever opened it still allowed to? */
  readonly isAllowed: () => Promise<boolean>;
}

const mostWaiting = 1024 * 1024;

export class EventStream {
  readonly body = new PassThrough();
  readonly identity: Identity;
  readonly isAllowed: () => Promise<boolean>;
  readonly #kinds: ReadonlySet<string> | undefined;
  /** What was last said of each queue. */
  readonly #told = new Map<number, string>();
  #at = 0;

  constructor({ identity, kinds, isAllowed }: StreamOptions) {
    this.identity = identity;
    this.isAllowed = isAllowed;
    this.#kinds = kinds;
    // A reader that leaves is no failure of ours.
    this.body.on("error", () => {});
  }

  /** The place of the last event that it has passed. */
  get at(): number {
    return this.#at;
  }

  get wantsCounts(): boolean {
    return this.#wants("counts");
  }

  open(at: number): void {
    this.#at = at;
    this.#write(`retry: 2000\nid: ${at}\nevent: open\ndata: {}\n\n`);
  }

  gap(at: number): void {
    this.#at = at;
    this.#write(`id: ${at}\nevent: gap\ndata: {}\n\n`);
  }

  hear({ no, at, kind, tenant, data }: StoredEvent): void {
    if (no <= this.#at) return;
    this.#at = no;
    if (!this.#wants(kind) || !this.#maySee(kind, tenant)) return;
    const told = { kind, at: at.toISOString(), tenant_id: tenant, data };
    this.#write(`id: ${no}\nevent: ${kind}\ndata: ${JSON.stringify(told)}\n\n`);
  }

  /** Of its own queues those whose figures changed; at first all. */
  count(queues: readonly CountedQueue[], at: Date): void {
    if (!this.wantsCounts) return;
    const changed = queues.filter((queue) => this.#isNews(queue));
    if (changed.length === 0) return;
    const data = { queues: changed.map(({ id, name, counts }) => ({ id, name, ...counts })) };
    const told = { kind: "counts", at: at.toISOString(), tenant_id: this.identity.tenant, data };
    this.#write(`event: counts\ndata: ${JSON.stringify(told)}\n\n`);
  }

  beat(): void {
    this.#write(": still here\n\n");
  }

  /** Resolves when what was written has gone out, or nobody reads any more. */
  async drained(): Promise<void> {
    if (this.#waiting() < mostWaiting / 2 || this.body.destroyed) return;
    await new Promise<void>((resolve) => {
      this.body.once("drain", resolve);
      this.body.once("close", resolve);
    });
  }

  end(): void {
    this.body.end();
  }

  #wants(kind: string): boolean {
    return this.#kinds?.has(kind) ?? true;
  }

  #maySee(kind: string, owner: string | null): boolean {
    const { tenant, role } = this.identity;
    if (kind === "audit" && !mayCall(role, ["manager"])) return false;
    return tenant === null || tenant === owner;
  }

  #isNews({ id, tenant, counts }: CountedQueue): boolean {
    if (this.identity.tenant !== null && this.identity.tenant !== tenant) return false;
    const text = JSON.stringify(counts);
    if (this.#told.get(id) === text) return false;
    this.#told.set(id, text);
    return true;
  }

  #waiting(): number {
    return this.body.writableLength + this.body.readableLength;
  }

  /** A reader that does not keep up comes back and goes on where it was. */
  #write(text: string): void {
    if (this.body.writableEnded || this.body.destroyed) return;
    if (this.#waiting() > mostWaiting) this.body.destroy();
    else this.body.write(text);
  }
}
