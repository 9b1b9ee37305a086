// One round trip of a worker: completions of the last batch, and the claim of the next one.
//
// A completion deletes the hot row under its token and appends to history. Both halves see one snapshot,
// which is fine: neither reads what the other writes. Whoever has only one half to do sends only that:
// a statement that opens fewer tables starts sooner.

import type { Turn, Turned } from "../store.ts";
import { claimByHint, claimByScan, claimParameters, selectClaimed, toJobs } from "./claim.ts";
import type { Connection } from "./connection.ts";
import { arrayText, statement } from "./statement.ts";

/** The nth parameter of a part whose parameters come after `p` others. */
const at = (p: number, n: number): string => `$${p + n}`;

// LATERAL with LIMIT fixes the join order, whatever the planner believes about the size of `job`.
const settle = (p: number) => `held as materialized (select ${at(p, 2)}::uuid[] as claims),
  settled as (
    delete from millrace.job j
    where j.ctid = any (array(
      select found.tid
      from held cross join rows from (unnest(${at(p, 1)}::uuid[]), unnest(${at(p, 3)}::int[]), unnest(${at(p, 8)}::int[]))
        s (id, claim_no, place)
      cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.id = s.id and j.claim_id = held.claims[s.place] and j.claim_no = s.claim_no limit 1
      ) found
    )) and j.claim_id = any ((select claims from held)::uuid[])
    returning j.*
  ),
  given as (
    select id, result from rows from (unnest(${at(p, 1)}::uuid[]), json_array_elements(${at(p, 4)}::json)) g (id, result)
    where ${at(p, 4)}::json is not null and json_typeof(result) <> 'null'
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, result,
      correlation_id, idempotency_key, reference, meta, timeline)
    select s.id, 'completed', s.created_at, s.started_at, now(), s.claim_id, s.queue_id, s.claim_no,
      q.retention_days, s.weight, s.attempt, s.max_attempts, s.crash_count, s.type, s.tenant, ${at(p, 5)}::text, s.payload,
      g.result, s.correlation_id, s.idempotency_key, s.reference, s.meta, s.timeline
    from settled s join millrace.queue q on q.id = s.queue_id left join given g on g.id = s.id
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, completed)
    select queue_id, ${at(p, 6)}::uuid, date_trunc('minute', now()), count(*) from settled group by queue_id
    on conflict (queue_id, process, minute) do update set completed = queue_count.completed + excluded.completed
  ),
  finished as (
    delete from millrace.claim where id = any(${at(p, 7)}::uuid[])
  )`;

const completed = (p: number) => `null::uuid, count(*)::int,
    case when count(*) < ${at(p, 9)}::int then array_to_string(array_agg(id), ',') end`;

const settleOnly = statement(
  "settle_completed",
  `with ${settle(0)} select ${completed(0)} from settled`,
);

const claimHint = statement("claim_by_hint", `with ${claimByHint.text} ${selectClaimed}`);

const claimScan = statement("claim_by_scan", `with recursive ${claimByScan.text} ${selectClaimed}`);

const turn = (name: string, claim: { parameters: number; text: string }) =>
  statement(
    name,
    `with recursive ${claim.text}, ${settle(claim.parameters)}
  select ${completed(claim.parameters)}, null, null, null, null, null, null, null, null, null, null, null
  from settled
  union all
  (${selectClaimed})`,
  );

const turnByHint = turn("turn_by_hint", claimByHint);
const turnByScan = turn("turn_by_scan", claimByScan);

function settleParameters(turn: Turn): (string | null)[] {
  const { completions } = turn;
  const results = completions.some((c) => c.result !== undefined);
  const claims = new Map<string, number>();
  for (const { token } of completions) {
    if (!claims.has(token.claimId)) claims.set(token.claimId, claims.size + 1);
  }
  return [
    arrayText(completions.map((c) => c.id)),
    arrayText([...claims.keys()]),
    arrayText(completions.map((c) => c.token.claimNo)),
    results ? `[${completions.map((c) => c.result ?? "null").join(",")}]` : null,
    turn.worker,
    turn.process,
    arrayText(turn.finishedClaims),
    arrayText(completions.map((c) => claims.get(c.token.claimId))),
    String(completions.length),
  ];
}

export async function takeTurn(connection: Connection, turn: Turn): Promise<Turned> {
  const { claim, completions } = turn;
  if (claim === null) {
    const rows = await connection.rows(settleOnly, settleParameters(turn));
    return { completed: await completeMissing(connection, turn, completedOf(rows)), jobs: [] };
  }
  if (completions.length === 0) {
    const source = claim.hints === null ? claimScan : claimHint;
    const rows = await connection.rows(source, claimParameters(claim));
    return { completed: null, jobs: toJobs(claim.claimId, rows) };
  }
  const source = claim.hints === null ? turnByScan : turnByHint;
  const [first = [], ...rows] = await connection.rows(source, [
    ...claimParameters(claim),
    ...settleParameters(turn),
  ]);
  const settled = await completeMissing(connection, turn, completedOf([first]));
  return { completed: settled, jobs: toJobs(claim.claimId, rows) };
}

function completedOf(rows: unknown[][]): ReadonlySet<string> | null {
  const [, count, ids] = rows[0] ?? [];
  if (count === 0) return none;
  return typeof ids === "string" ? new Set(ids.split(",")) : null;
}

const none: ReadonlySet<string> = new Set();

/**
 * A cancel requested at the same moment replaces the row that the statement has found, and the
 * statement passes over it: whoever is missing is looked for again before it counts as superseded.
 */
async function completeMissing(
  connection: Connection,
  turn: Turn,
  completed: ReadonlySet<string> | null,
): Promise<ReadonlySet<string> | null> {
  if (completed === null || turn.completions.length === 0) return null;
  const missing = turn.completions.filter(({ id }) => !completed.has(id));
  const again = { ...turn, completions: missing, finishedClaims: [] };
  const found = completedOf(await connection.rows(settleOnly, settleParameters(again)));
  return found === null ? null : new Set([...completed, ...found]);
}
