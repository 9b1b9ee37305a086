// What PostgreSQL refuses to store must not hold up what it is settled with. A batch that fails over its
// data is settled one by one, and whoever is refused even so ends as a dead letter that says why.

import { describeError } from "../../domain/describe-error.ts";
import type { Completion, Settled, Settlement, Turn, Turned } from "../store.ts";
import type { Habits } from "./claimed-row.ts";
import type { Connection } from "./connection.ts";
import { isDataError } from "./failures.ts";
import { settleJobs } from "./settle.ts";
import { takeTurn } from "./turn.ts";

interface SettleContext {
  readonly worker: string;
  readonly process: string;
}

export async function takeTurnOrSingly(
  connection: Connection,
  turn: Turn,
  habits: Habits,
): Promise<Turned> {
  try {
    return await takeTurn(connection, turn, habits);
  } catch (error) {
    if (turn.completions.length === 0 || !isDataError(error)) throw error;
  }
  const completed = new Set<string>();
  for (const completion of turn.completions) {
    if (await completeAlone(connection, turn, completion)) completed.add(completion.id);
  }
  const { jobs } = await takeTurn(connection, { ...turn, completions: [] });
  return { completed, jobs };
}

async function completeAlone(connection: Connection, turn: Turn, one: Completion) {
  try {
    const alone = { ...turn, completions: [one], claim: null };
    const { completed } = await takeTurn(connection, alone);
    return completed === null || completed.has(one.id);
  } catch (error) {
    if (!isDataError(error)) throw error;
    return (await bury(connection, one, turn, error)).has(one.id);
  }
}

export async function settleOrSingly(
  connection: Connection,
  settlements: readonly Settlement[],
  context: SettleContext,
): Promise<Settled> {
  try {
    return await settleJobs(connection, settlements, context);
  } catch (error) {
    if (!isDataError(error)) throw error;
  }
  const settled = new Map<string, string>();
  for (const one of settlements) {
    for (const [id, kind] of await settleAlone(connection, one, context)) settled.set(id, kind);
  }
  return settled;
}

async function settleAlone(connection: Connection, one: Settlement, context: SettleContext) {
  try {
    return await settleJobs(connection, [one], context);
  } catch (error) {
    if (!isDataError(error)) throw error;
    return bury(connection, one, context, error);
  }
}

/** Keeps the timeline that the job has: the one it was to get may be what was refused. */
async function bury(
  connection: Connection,
  { id, token }: Pick<Settlement, "id" | "token">,
  context: SettleContext,
  refusal: unknown,
): Promise<Settled> {
  const why = refusal instanceof Error ? refusal.message : String(refusal);
  const error = new Error(`PostgreSQL refused to store how this run ended: ${why}`);
  error.name = "SettleRefused";
  delete error.stack;
  const outcome = {
    kind: "dead" as const,
    error: describeError("", error, { class: "non_retryable" }),
  };
  try {
    return await settleJobs(connection, [{ id, token, outcome, timeline: undefined }], context);
  } catch (again) {
    // Not even so: it counts as superseded, and comes back when its lease is over.
    if (isDataError(again)) return new Map();
    throw again;
  }
}
