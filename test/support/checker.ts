// The offline check of a chaos run: acknowledged ids and ledgers against the final tables.

import type pg from "pg";
import type { TimelineEntry } from "../../src/index.ts";
import { type Run, runsOf } from "./ledger.ts";
import type { LedgerLine } from "./worker-process.ts";

interface FinalRow {
  readonly id: string;
  readonly state: string;
  readonly token: string | null;
  readonly crash_count: number;
  readonly result: { token?: string } | null;
  readonly timeline: readonly TimelineEntry[] | null;
}

const finalRows = `
  select id, state, claim_id || '/' || claim_no as token, crash_count, result, timeline from millrace.history
  union all
  select id, state, claim_id || '/' || claim_no, crash_count, null, timeline from millrace.dead_job
  union all
  select id, 'open', null, crash_count, null, timeline from millrace.job
  union all
  select id, 'open', null, crash_count, null, timeline from millrace.scheduled_job`;

/** Everything that is wrong, in words; nothing when all is well. */
export async function findViolations(
  db: pg.Pool,
  acknowledged: readonly string[],
  ledger: readonly LedgerLine[],
): Promise<string[]> {
  const { rows } = await db.query<FinalRow>(finalRows);
  const byId = new Map<string, FinalRow[]>();
  for (const row of rows) byId.set(row.id, [...(byId.get(row.id) ?? []), row]);
  const runs = new Map<string, Run[]>();
  for (const run of runsOf(ledger)) runs.set(run.job, [...(runs.get(run.job) ?? []), run]);
  const violations = acknowledged
    .filter((id) => !byId.has(id))
    .map((id) => `${id} was acknowledged and is lost`);
  for (const [id, same] of byId) {
    if (same.length !== 1) violations.push(`${id} is stored ${same.length} times`);
    for (const row of same) violations.push(...violationsOf(row, runs.get(id) ?? []));
  }
  return violations;
}

function violationsOf(row: FinalRow, runs: readonly Run[]): string[] {
  const { id, state, token, timeline } = row;
  const found: string[] = [];
  if (state === "open") return [`${id} has not ended`];
  const entries = timeline ?? [];
  if (new Set(entries.map((entry) => entry.token)).size !== entries.length)
    found.push(`${id}: a run ended twice`);
  if (entries.some((entry) => entry.outcome === "completed"))
    found.push(`${id}: went on after its completion`);
  if (state === "completed") {
    const last = runs.find((run) => run.token === token);
    if (last?.ended !== true) found.push(`${id}: completed under ${token}, which never ended`);
    if (row.result?.token !== token) found.push(`${id}: ${row.result?.token} wrote as ${token}`);
    if (entries.some((entry) => entry.token === token)) found.push(`${id}: lapsed and completed`);
  } else if (state === "dead") {
    if (row.crash_count < 3) found.push(`${id}: dead after ${row.crash_count} crashes`);
  } else found.push(`${id}: ended as ${state}`);
  return [...found, ...tokenViolations(id, token, runs)];
}

/** A token is granted once, and none after the one that ended the job. */
function tokenViolations(id: string, token: string | null, runs: readonly Run[]): string[] {
  const found: string[] = [];
  const inOrder = [...runs].sort((a, b) => claimNo(a.token) - claimNo(b.token));
  for (const [i, run] of inOrder.entries()) {
    const next = inOrder[i + 1];
    if (next !== undefined && claimNo(next.token) === claimNo(run.token))
      found.push(`${id}: two tokens of one number`);
  }
  const newest = inOrder.at(-1);
  if (newest !== undefined && claimNo(newest.token) > claimNo(token ?? "/0"))
    found.push(`${id}: ran under ${newest.token} after it had ended under ${token}`);
  return found;
}

const claimNo = (token: string): number => Number(token.split("/")[1]);
