import { MillraceError } from "../../domain/errors.ts";

export interface KeyOptions {
  readonly name: string;
  /** The ready lists are `<readyKey>:<weight>`. */
  readonly readyKey?: string | undefined;
  readonly scheduledKey?: string | undefined;
}

/** In the order in which scripts/shared.lua names them. */
const parts = [
  "items",
  "ready",
  "weights",
  "returned",
  "scheduled",
  "takers",
  "held",
  "dead",
  "graves",
  "wake",
  "sequence",
  "heard",
] as const;

export type QueueKey = (typeof parts)[number];

export interface QueueKeys {
  readonly all: readonly string[];
  readonly wake: string;
  readonly held: (taker: string) => string;
}

export function queueKeys(options: KeyOptions): QueueKeys {
  const { readyKey, scheduledKey } = options;
  const given = readyKey ?? scheduledKey;
  if (readyKey !== undefined && `${scheduledKey}:`.startsWith(`${readyKey}:`))
    throw new MillraceError("OPTION_INVALID", "scheduledKey must not lie among the ready lists.");
  const tag = (given === undefined ? undefined : hashTagOf(given)) ?? options.name;
  const own = { ready: readyKey, scheduled: scheduledKey };
  const key = (part: QueueKey) =>
    (part === "ready" || part === "scheduled" ? own[part] : undefined) ??
    `millrace:{${tag}}:${part}`;
  return {
    all: parts.map(key),
    wake: key("wake"),
    held: (taker) => `${key("held")}:${taker}`,
  };
}

/** In a Cluster one script sees one slot, so the user's own keys must lie in the queue's. */
export function checkSameSlot({ all }: QueueKeys): void {
  const tags = new Set(all.map(hashTagOf));
  if (tags.size === 1 && !tags.has(undefined)) return;
  throw new MillraceError(
    "OPTION_INVALID",
    "In a Redis Cluster readyKey and scheduledKey must carry the same hash tag, such as {reports}.",
  );
}

function hashTagOf(key: string): string | undefined {
  const tag = /\{([^}]+)\}/.exec(key)?.[1];
  return tag;
}
