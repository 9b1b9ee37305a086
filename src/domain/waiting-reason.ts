// Why a job is not running now. The store reads the facts with the very predicates of its claim; here they
// become one reason, the one that comes first.

import type { JobState } from "./job-state.ts";
import type { RunOutcome } from "./timeline.ts";

/** What `queue_gate` and `lane_gate` say in SQL. */
export type GateReason =
  | "queue_inactive"
  | "queue_paused"
  | "concurrency"
  | "throttle"
  | "order_running"
  | "order_retrying"
  | "order_dead"
  | "key_concurrency"
  | "key_throttle";

export type WaitingReason =
  | GateReason
  | "running"
  | "ended"
  | "delayed"
  | "retrying"
  | "snoozed"
  | "breaker_open"
  | "due"
  | "expired"
  | "tenant_paused"
  | "order_waiting"
  | "no_worker"
  | "no_handler"
  | "workers_busy"
  | "suspect"
  | "turn"
  | "next";

interface Gate {
  readonly reason: GateReason | null;
  readonly freeAt: Date | null;
}

export interface Holder {
  readonly job: string;
  readonly worker: string | null;
}

export interface BreakerFacts {
  readonly name: string;
  readonly state: "CLOSED" | "OPEN" | "HALF_OPEN";
  /** While open: from when on a probe may go out; null: not before somebody closes it. */
  readonly retryAt: Date | null;
  /** It is what put the job off the last time. */
  readonly putOff: boolean;
}

/** An earlier job of its ordering key that is not ready: it waits for its time, or is a dead letter. */
export interface BlockerFacts {
  readonly job: string;
  readonly dueAt: Date | null;
  readonly lastOutcome: RunOutcome | null;
  /** The breaker that put it off the last time. */
  readonly breaker: string | null;
  /** That one is open until somebody closes it. */
  readonly heldByHand: boolean;
}

export interface WaitingFacts {
  readonly id: string;
  readonly state: JobState;
  readonly queue: string;
  readonly type: string;
  readonly tenant: string;
  readonly now: Date;
  readonly dueAt: Date | null;
  readonly expiresAt: Date | null;
  /** How its last run ended, if it has run. */
  readonly lastOutcome: RunOutcome | null;
  /** The breaker of its platform, if it has one that anybody knows of. */
  readonly breaker: BreakerFacts | null;
  readonly crashCount: number;
  readonly tenantPaused: boolean;
  readonly queueGate: Gate;
  readonly laneGate: Gate;
  /** Who holds what the gates count: jobs of the queue, or of its lane. */
  readonly holders: readonly Holder[];
  /** An earlier job of its key, not ended yet. */
  readonly earlier: string | null;
  /** Who blocks its lane without running. */
  readonly blocker: BlockerFacts | null;
  readonly limits: {
    readonly concurrency: number | null;
    readonly keyConcurrency: number | null;
  };
  /** Live workers of its queue, and those of them that know its type. */
  readonly workers: number;
  readonly handlers: number;
  /** Those of them that hold fewer jobs than they run at once. */
  readonly freeHandlers: number;
  /** Jobs before it that wait too: of its own tenant and lane, and of more urgent ones. */
  readonly ahead: { readonly own: number; readonly urgent: number };
  /** Tenants with jobs of its weight: it takes turns with them. */
  readonly tenants: number;
}

export interface Explanation {
  readonly job: string;
  readonly state: JobState;
  readonly reason: WaitingReason;
  readonly text: string;
  /** When this reason ends by itself, if that is known. */
  readonly until: Date | null;
  readonly holders: readonly Holder[];
}

type Answer = Pick<Explanation, "reason" | "text"> & { readonly until?: Date | null };

export function explain(facts: WaitingFacts): Explanation {
  const { reason, text, until = null } = reasonOf(facts);
  return { job: facts.id, state: facts.state, reason, text, until, holders: heldBy(reason, facts) };
}

function heldBy(reason: WaitingReason, facts: WaitingFacts): readonly Holder[] {
  if (holding.has(reason)) return facts.holders;
  const job = blocked.has(reason) ? facts.blocker?.job : waitsFor(reason, facts);
  return job === undefined || job === null ? [] : [{ job, worker: null }];
}

const waitsFor = (reason: WaitingReason, { earlier }: WaitingFacts): string | null =>
  reason === "order_waiting" ? earlier : null;

const holding: ReadonlySet<WaitingReason> = new Set([
  "running",
  "concurrency",
  "key_concurrency",
  "order_running",
]);

const blocked: ReadonlySet<WaitingReason> = new Set(["order_retrying", "order_dead"]);

function reasonOf(facts: WaitingFacts): Answer {
  const { state } = facts;
  if (state === "running") return { reason: "running", text: `It runs on ${holderOf(facts)}.` };
  if (state !== "ready" && state !== "scheduled")
    return { reason: "ended", text: `It is ${state}.` };
  if (facts.expiresAt !== null && facts.expiresAt <= facts.now)
    return { reason: "expired", text: "It has expired, and will not run." };
  return state === "scheduled" ? scheduled(facts) : (gated(facts) ?? waiting(facts));
}

const holderOf = ({ holders }: WaitingFacts): string => holders[0]?.worker ?? "a worker";

function scheduled({ dueAt, now, lastOutcome, breaker }: WaitingFacts): Answer {
  if (dueAt === null || dueAt <= now)
    return { reason: "due", text: "It is due, and is made ready in a moment." };
  const at = dueAt.toISOString();
  if (lastOutcome === "snoozed" && breaker?.putOff === true) {
    const { name, state } = breaker;
    return state === "CLOSED"
      ? {
          reason: "snoozed",
          text: `Breaker "${name}" has closed; it returns at ${at}.`,
          until: dueAt,
        }
      : {
          reason: "breaker_open",
          text: `${openText(breaker)} It returns at ${at}.`,
          until: isHeldByHand(breaker) ? null : dueAt,
        };
  }
  if (lastOutcome === "snoozed")
    return { reason: "snoozed", text: `Its handler put it off until ${at}.`, until: dueAt };
  if (lastOutcome === "retried")
    return { reason: "retrying", text: `It failed, and is tried again at ${at}.`, until: dueAt };
  return { reason: "delayed", text: `It is delayed until ${at}.`, until: dueAt };
}

/** Then nobody knows until when: what returns is put off again. */
const isHeldByHand = ({ state, retryAt }: BreakerFacts): boolean =>
  state === "OPEN" && retryAt === null;

function openText({ name, state, retryAt }: BreakerFacts): string {
  if (state === "HALF_OPEN") return `Breaker "${name}" lets probes through only.`;
  if (retryAt === null) return `Breaker "${name}" is open until somebody closes it.`;
  return `Breaker "${name}" is open until ${retryAt.toISOString()}.`;
}

const gateTexts: Record<GateReason, (facts: WaitingFacts) => string> = {
  queue_inactive: ({ queue }) => `Queue "${queue}" is not active.`,
  queue_paused: ({ queue }) => `Queue "${queue}" is paused.`,
  concurrency: ({ queue, limits }) =>
    `Queue "${queue}" runs ${limits.concurrency} jobs at once, and that many run.`,
  throttle: ({ queue }) => `Queue "${queue}" has used up its starts for now.`,
  order_running: () => "Another job of its ordering key runs.",
  order_retrying: ({ blocker }) => blockerText(blocker),
  order_dead: ({ blocker }) =>
    `Dead letter ${blocker?.job ?? ""} blocks its ordering key until somebody deals with it.`,
  key_concurrency: ({ limits }) =>
    `${limits.keyConcurrency} jobs of its limit key may run at once, and that many run.`,
  key_throttle: () => "Its key has used up its starts for now.",
};

function blockerText(blocker: BlockerFacts | null): string {
  if (blocker === null) return putOffText;
  const { job, dueAt, lastOutcome, breaker, heldByHand } = blocker;
  const at = dueAt?.toISOString() ?? "its time";
  const first = `Job ${job} of its ordering key comes first`;
  if (lastOutcome !== "snoozed") return `${first}: it failed, and is tried again at ${at}.`;
  if (breaker === null) return `${first}: its handler put it off until ${at}.`;
  const open = heldByHand ? `, which is open until somebody closes it` : "";
  return `${first}: it is put off until ${at} by breaker "${breaker}"${open}.`;
}

const putOffText = "An earlier job of its ordering key is put off, or waits for its next attempt.";

/** What blocks a queue or lane for everybody. */
function gated(facts: WaitingFacts): Answer | null {
  const { queueGate, laneGate, earlier } = facts;
  if (queueGate.reason?.startsWith("queue_")) return byGate(facts);
  if (facts.tenantPaused)
    return { reason: "tenant_paused", text: `Tenant "${facts.tenant}" is paused.` };
  if (queueGate.reason !== null || laneGate.reason !== null) return byGate(facts);
  if (earlier === null) return null;
  return { reason: "order_waiting", text: `Job ${earlier} of its ordering key comes first.` };
}

function byGate(facts: WaitingFacts): Answer {
  const { queueGate, laneGate } = facts;
  const gate = queueGate.reason !== null ? queueGate : laneGate;
  const reason = gate.reason as GateReason;
  const until = endsByItself(reason, facts) ? gate.freeAt : null;
  return { reason, text: gateTexts[reason](facts), until };
}

/** A gate also says when a throttle frees that is not what blocks. */
const endsByItself = (reason: GateReason, { blocker }: WaitingFacts): boolean =>
  reason === "throttle" ||
  reason === "key_throttle" ||
  (reason === "order_retrying" && blocker?.heldByHand !== true);

/** Nothing blocks it: who is to run it, and who comes first? */
function waiting(facts: WaitingFacts): Answer {
  const { queue, type, ahead, tenants, breaker } = facts;
  if (breaker?.state === "OPEN")
    return {
      reason: "breaker_open",
      text: `${openText(breaker)} Whoever claims it puts it off.`,
      until: breaker.retryAt,
    };
  if (facts.workers === 0)
    return { reason: "no_worker", text: `No worker serves queue "${queue}".` };
  if (facts.handlers === 0)
    return { reason: "no_handler", text: `No worker of queue "${queue}" runs "${type}".` };
  const jobs = ahead.own + ahead.urgent;
  if (jobs > 0) {
    const turns = tenants > 1 ? `, and ${tenants} tenants take turns` : "";
    return { reason: "turn", text: `${countText(jobs)} before it${turns}.` };
  }
  if (facts.crashCount > 0)
    return {
      reason: "suspect",
      text: "It was there when a process died, and waits for a worker that holds no other such job.",
    };
  if (facts.freeHandlers === 0) {
    const all = facts.handlers === 1 ? "The only worker" : `All ${facts.handlers} workers`;
    const text = `It is next. ${all} of queue "${queue}" for "${type}" cannot take more at once.`;
    return { reason: "workers_busy", text };
  }
  return { reason: "next", text: "Nothing holds it back: the next free worker takes it." };
}

const plainTexts: Partial<Record<WaitingReason, string>> = {
  running: "It runs.",
  order_waiting: "An earlier job of its ordering key comes first.",
  order_retrying: putOffText,
  order_dead: "A dead letter blocks its ordering key until somebody deals with it.",
  turn: "Other jobs come before it.",
};

/** For whoever may know of these jobs only: neither workers, nor other jobs, nor how many there are. */
export function withoutOthers(told: Explanation, own: ReadonlySet<string>): Explanation {
  return {
    ...told,
    text: plainTexts[told.reason] ?? told.text,
    holders: told.holders
      .filter(({ job }) => own.has(job))
      .map(({ job }) => ({ job, worker: null })),
  };
}

/** Nobody counts further than this. */
export const mostCounted = 1_000;

const countText = (jobs: number): string =>
  jobs >= mostCounted
    ? `At least ${mostCounted} jobs come`
    : jobs === 1
      ? "1 job comes"
      : `${jobs} jobs come`;
