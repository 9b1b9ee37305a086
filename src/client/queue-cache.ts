import type { Clock } from "../runtime/clock.ts";
import type { Queue, QueueCounts, Store } from "../store/store.ts";

const freshMs = 5_000;
const mostResolved = 10_000;

/** No name holds a line break, so no shared queue and no number reads like this. */
const ownKey = (tenant: string, name: string) => `${tenant}\n${name}`;

/** Deliveries to webhooks are made, run and ended by Millrace alone. */
export const isReserved = (name: string): boolean => name.startsWith("millrace.");

/** Queues by name, made on first use. Settings may be a few seconds old; the store's guards are not. */
export class QueueCache {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #queues = new Map<string, { queue: Queue; readAt: number }>();
  readonly #byId = new Map<number, Queue>();
  readonly #making = new Map<string, Promise<Queue>>();
  readonly #resolved = new Map<string, { queue: Queue; readAt: number }>();
  #changes = 0;

  constructor(store: Store, clock: Clock) {
    this.#store = store;
    this.#clock = clock;
  }

  /** At once when known; an old entry is served and read again behind the caller's back. */
  known(name: string): Queue | undefined {
    const entry = this.#queues.get(name);
    if (entry === undefined) return undefined;
    if (this.#clock.monotonic() - entry.readAt > freshMs) {
      entry.readAt = this.#clock.monotonic();
      void this.ensure([name]).catch(() => {});
    }
    return entry.queue;
  }

  /** As long as this is the same, so is what is known. */
  get changes(): number {
    return this.#changes;
  }

  /** From then on it is to be read again. */
  freshUntil(name: string): number {
    return (this.#queues.get(name)?.readAt ?? Number.NEGATIVE_INFINITY) + freshMs;
  }

  async ensure(names: readonly string[]): Promise<Queue[]> {
    const queues = await this.#store.ensureQueues("", names);
    for (const queue of queues) this.put(queue);
    return queues;
  }

  /** What a worker of these names serves: the shared queues, and the tenants' own. */
  async served(names: readonly string[]): Promise<Queue[]> {
    const shared = await this.ensure(names);
    const open = names.filter((name) => !isReserved(name));
    return open.length === 0 ? shared : [...shared, ...(await this.#store.tenantQueues(open))];
  }

  async get(name: string): Promise<Queue> {
    const known = this.known(name);
    if (known !== undefined) return known;
    const making = this.#making.get(name) ?? this.#first(name);
    this.#making.set(name, making);
    return making.finally(() => this.#making.delete(name));
  }

  /** The tenant's own queue of this name, else the shared one, which is made on first use. */
  async resolve(tenant: string, name: string): Promise<Queue> {
    return (await this.find(tenant, name)) ?? this.#first(name);
  }

  /** The same for those who see one tenant only: what they make is that tenant's, and workers hear of it. */
  async resolveOwn(tenant: string, name: string): Promise<Queue> {
    const found = await this.find(tenant, name);
    if (found !== null) return found;
    // Everybody has this one in mind who names none; the others are Millrace's own.
    if (name === "default" || isReserved(name)) return this.#first(name);
    const made = await this.#store.configureQueue(tenant, name, {});
    this.put(made);
    return made;
  }

  /** The same, but null when there is none. */
  find(tenant: string, name: string): Promise<Queue | null> {
    return this.#recall(ownKey(tenant, name), (queues) => queues.resolve(tenant, name));
  }

  findById(id: number): Promise<Queue | null> {
    return this.#recall(String(id), (queues) => queues.find(id));
  }

  async #recall(
    key: string,
    read: (queues: Store["service"]["queues"]) => Promise<Queue | null>,
  ): Promise<Queue | null> {
    const known = this.#resolved.get(key);
    const now = this.#clock.monotonic();
    if (known !== undefined && now - known.readAt <= freshMs) return known.queue;
    const queue = await read(this.#store.service.queues);
    if (queue === null) return null;
    this.put(queue);
    if (this.#resolved.size >= mostResolved) this.#resolved.clear();
    this.#resolved.set(key, { queue, readAt: now });
    return queue;
  }

  put(queue: Queue): void {
    this.#changes++;
    const key = queue.tenant === "" ? queue.name : ownKey(queue.tenant, queue.name);
    const before = this.#queues.get(key)?.queue.id;
    if (before !== undefined) this.#byId.delete(before);
    this.#queues.set(key, { queue, readAt: this.#clock.monotonic() });
    this.#byId.set(queue.id, queue);
  }

  /** Somebody changed a queue: read again on next use. */
  invalidate(): void {
    this.#changes++;
    for (const entry of this.#queues.values()) entry.readAt = Number.NEGATIVE_INFINITY;
    this.#resolved.clear();
  }

  byId(id: number): Queue | undefined {
    return this.#byId.get(id);
  }

  async #first(name: string): Promise<Queue> {
    const [queue] = await this.ensure([name]);
    if (queue === undefined) throw new Error(`queue "${name}" could not be made`);
    return queue;
  }
}

/** What a service in front asks for. */
export type FoundQueues = Pick<
  QueueCache,
  "resolve" | "resolveOwn" | "find" | "findById" | "byId" | "invalidate"
>;

export async function countedQueues(store: Store): Promise<(Queue & { counts: QueueCounts })[]> {
  const queues = await store.queues();
  const counts = await store.counts(queues.map((queue) => queue.id));
  return queues.map((queue) => ({ ...queue, counts: counts.get(queue.id) as QueueCounts }));
}
