// Metrics of one process: what its events tell, and what the servers say when somebody looks. A scrape
// asks the servers at most once a second, waits for them a bounded time, and answers without them.

import type { BreakerState } from "../domain/circuit-breaker.ts";
import type { Clock } from "../runtime/clock.ts";
import { systemClock } from "../runtime/clock.ts";
import { countEvents } from "../runtime/metric-events.ts";
import { type Gauge, MetricsRegistry } from "../runtime/metrics.ts";
import type { Figures } from "../store/figures.ts";
import type { Millrace } from "./millrace.ts";

export interface Metrics {
  /** Everything as Prometheus reads it (text format 0.0.4). Never rejects because a server is down. */
  text(): Promise<string>;
  /** Stops counting. */
  close(): void;
}

/** What the HTTP service adds from its own. */
export interface MetricsOptions {
  readonly clock?: Clock;
  /** Robots that wait here for items, and how often they were looked for. */
  readonly robots?: () => { readonly waiting: number; readonly polls: number };
}

export const metricsContentType = "text/plain; version=0.0.4; charset=utf-8";

const freshMs = 1_000;
const patienceMs = 2_000;

/** Counts from now on what this instance does. Without it (and without the HTTP service) nothing is counted. */
export function createMetrics(millrace: Millrace, options: MetricsOptions = {}): Metrics {
  const registry = new MetricsRegistry();
  const gauges = createGauges(registry, options);
  const names = new QueueNames(millrace);
  const end = countEvents(millrace.events, registry, (id) => names.of(id));
  const read = new Reading(millrace, options.clock ?? systemClock);
  return {
    async text() {
      const seen = await read.now();
      if (seen.figures !== null) names.learn(seen.figures);
      gauges.show(millrace, seen);
      return registry.text();
    },
    close: end,
  };
}

type Labels = readonly [tenant: string, queue: string];

class QueueNames {
  readonly #millrace: Millrace;
  readonly #known = new Map<number, Labels>();

  constructor(millrace: Millrace) {
    this.#millrace = millrace;
  }

  of(id: number): Labels {
    const known = this.#known.get(id);
    if (known !== undefined) return known;
    const queue = this.#millrace.queueCache.byId(id);
    if (queue === undefined) return ["", `#${id}`];
    const labels = labelsOf(queue);
    this.#known.set(id, labels);
    return labels;
  }

  learn({ queues }: Figures): void {
    for (const queue of queues) this.#known.set(queue.id, labelsOf(queue));
  }
}

const labelsOf = ({ tenant, name }: { tenant: string; name: string }): Labels => [tenant, name];

interface RedisHealth {
  readonly name: string;
  readonly serves: boolean;
  readonly memoryBytes: number | null;
}

interface Seen {
  /** null: PostgreSQL did not answer, or not in time. */
  readonly figures: Figures | null;
  /** null: there is no Redis. */
  readonly redis: readonly RedisHealth[] | null;
}

/** One question at a time, however many look, and none while the last answer is fresh. */
class Reading {
  readonly #millrace: Millrace;
  readonly #clock: Clock;
  #asking: Promise<Figures> | null = null;
  #last: { readonly figures: Figures; readonly at: number } | null = null;

  constructor(millrace: Millrace, clock: Clock) {
    this.#millrace = millrace;
    this.#clock = clock;
  }

  async now(): Promise<Seen> {
    const { broker } = this.#millrace;
    const [figures, redis] = await Promise.all([
      this.#within(this.#figures()),
      broker === null ? null : this.#within(broker.health()),
    ]);
    return { figures, redis: broker === null ? null : (redis ?? []) };
  }

  #figures(): Promise<Figures> {
    const last = this.#last;
    if (last !== null && this.#clock.monotonic() - last.at < freshMs)
      return Promise.resolve(last.figures);
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return this.#asking;
  }

  async #ask(): Promise<Figures> {
    const figures = await this.#millrace.store.service.figures.read();
    this.#last = { figures, at: this.#clock.monotonic() };
    return figures;
  }

  /** null: it failed, or it takes too long. */
  async #within<T>(asking: Promise<T>): Promise<T | null> {
    const enough = new AbortController();
    const late = this.#clock.sleep(patienceMs, enough.signal).then(() => null);
    try {
      return await Promise.race([asking.catch(() => null), late]);
    } finally {
      enough.abort();
    }
  }
}

interface Gauges {
  show(millrace: Millrace, seen: Seen): void;
}

const breakerStates: Record<BreakerState, number> = { CLOSED: 0, HALF_OPEN: 1, OPEN: 2 };

function createGauges(registry: MetricsRegistry, { robots }: MetricsOptions): Gauges {
  const up = registry.gauge("millrace_up", "1 when PostgreSQL answered this scrape.");
  const stored = createStoredGauges(registry);
  const redisHealth = registry.gauge(
    "millrace_redis_health",
    "1 while Redis serves, 0 while it does not; there is no such series without Redis.",
    ["redis"],
  );
  const redisMemory = registry.gauge("millrace_redis_memory_bytes", "Memory that Redis uses.", [
    "redis",
  ]);
  const mode = registry.gauge(
    "millrace_dispatch_mode",
    "1 for the mode of dispatch that is in use.",
    ["mode"],
  );
  const pool = createPoolGauges(registry);
  const robotGauges = robots === undefined ? null : createRobotGauges(registry, robots);
  return {
    show(millrace, { figures, redis }) {
      up.set([], figures === null ? 0 : 1);
      stored(figures);
      redisHealth.replace((redis ?? []).map(({ name, serves }) => [[name], serves ? 1 : 0]));
      redisMemory.replace(
        (redis ?? []).flatMap(({ name, memoryBytes }) =>
          memoryBytes === null ? [] : [[[name], memoryBytes] as const],
        ),
      );
      // Who has put no hint since Redis went does not know yet that it did.
      const isServed = (redis ?? []).some(({ serves }) => serves);
      const dispatch = isServed ? millrace.dispatch : "direct";
      for (const one of ["brokered", "direct"]) mode.set([one], dispatch === one ? 1 : 0);
      pool(millrace);
      robotGauges?.();
    },
  };
}

/** What the database knows is left out while it does not answer: an old figure would look like a new one. */
function createStoredGauges(registry: MetricsRegistry): (figures: Figures | null) => void {
  const depth = registry.gauge(
    "millrace_queue_depth",
    "Jobs that have not ended, by queue and state; scheduled ones are estimated where there are very many.",
    ["tenant", "queue", "state"],
  );
  const oldest = registry.gauge(
    "millrace_queue_oldest_ready_age_seconds",
    "How long the oldest ready job has been ready; 0 when none is.",
    ["tenant", "queue"],
  );
  const paused = registry.gauge("millrace_queue_paused", "1 while the queue is paused.", [
    "tenant",
    "queue",
  ]);
  const breakers = registry.gauge(
    "millrace_breaker_state",
    "Of the platform's circuit breaker: 0 closed, 1 half open, 2 open.",
    ["platform"],
  );
  const inOffice = registry.gauge("millrace_leader_in_office", "1 while some process is leader.");
  const term = registry.gauge("millrace_leader_term", "The term of the last election.");
  const workers = registry.gauge("millrace_workers", "Workers with a living lease.");
  return (figures) => {
    const queues = figures?.queues ?? [];
    depth.replace(
      queues.flatMap((queue) =>
        (["ready", "scheduled", "running"] as const).map(
          (state) => [[...labelsOf(queue), state], queue[state]] as const,
        ),
      ),
    );
    oldest.replace(queues.map((queue) => [labelsOf(queue), queue.oldestReadySeconds ?? 0]));
    paused.replace(queues.map((queue) => [labelsOf(queue), queue.paused ? 1 : 0]));
    breakers.replace(
      (figures?.breakers ?? []).map(({ name, state }) => [[name], breakerStates[state]]),
    );
    showOne(inOffice, figures?.leader.inOffice);
    showOne(term, figures?.leader.term);
    showOne(workers, figures?.workers);
  };
}

function showOne(gauge: Gauge, value: number | boolean | undefined): void {
  gauge.replace(value === undefined ? [] : [[[], Number(value)]]);
}

function createPoolGauges(registry: MetricsRegistry): (millrace: Millrace) => void {
  const connections = registry.gauge(
    "millrace_pool_connections",
    "Connections of this process's pool, by use.",
    ["state"],
  );
  const size = registry.gauge("millrace_pool_size", "How many the pool may open.");
  const waiting = registry.gauge("millrace_pool_waiting", "Callers that wait for a connection.");
  return (millrace) => {
    const use = millrace.store.service.figures.pool();
    connections.set(["busy"], use.open - use.idle);
    connections.set(["idle"], use.idle);
    size.set([], use.size);
    waiting.set([], use.waiting);
  };
}

function createRobotGauges(
  registry: MetricsRegistry,
  robots: NonNullable<MetricsOptions["robots"]>,
): () => void {
  const waiting = registry.gauge("millrace_robots_waiting", "Robots that wait here for items.");
  const polls = registry.counter(
    "millrace_robot_polls_total",
    "How often this process has looked for items, for all robots together.",
  );
  let told = 0;
  return () => {
    const now = robots();
    waiting.set([], now.waiting);
    polls.add([], now.polls - told);
    told = now.polls;
  };
}
