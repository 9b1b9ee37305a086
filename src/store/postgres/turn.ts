// One round trip of a worker: completions of the last batch, and the claim of the next one.
//
// A completion deletes the hot row under its token and appends to history. Both halves see one snapshot,
// which is fine: neither reads what the other writes. Whoever has only one half to do sends only that:
// a statement that opens fewer tables starts sooner.

import type { Completion, Turn, Turned } from "../store.ts";
import {
  type ClaimWay,
  claimOnly,
  claimParameters,
  claims,
  selectClaimed,
  wayOf,
} from "./claim.ts";
import { Habits, toJobs } from "./claimed-row.ts";
import type { Connection } from "./connection.ts";
import { arrayText, statement } from "./statement.ts";
import { countTenants } from "./tenant-count.ts";
import { standing, untilGone } from "./until-gone.ts";

/** The nth parameter of a part whose parameters come after `p` others. */
const at = (p: number, n: number): string => `$${p + n}`;

// LATERAL with LIMIT fixes the join order, whatever the planner believes about the size of `job`.
const wanted = {
  id: (
    p: number,
  ) => `unnest(${at(p, 1)}::uuid[]), unnest(${at(p, 3)}::int[]), unnest(${at(p, 8)}::int[]),
        unnest(${at(p, 12)}::bigint[])) s (id, claim_no, nth)
      cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.id = s.id and j.claim_id = held.claims[s.nth] and j.claim_no = s.claim_no limit 1
      ) found`,
  // Where the claim left the row. Whatever stands there by now, the token and the seq tell it apart.
  place: (
    p: number,
  ) => `unnest(${at(p, 1)}::tid[]), unnest(${at(p, 3)}::int[]), unnest(${at(p, 8)}::int[]),
        unnest(${at(p, 12)}::bigint[])) s (tid, claim_no, nth, seq)
      cross join lateral (
        select j.ctid as tid from millrace.job j
        where j.ctid = s.tid and j.seq = s.seq and j.claim_id = held.claims[s.nth] and j.claim_no = s.claim_no limit 1
      ) found`,
};

const results = {
  // Two runs of one job may end together: a result belongs to its run.
  given: (p: number) => ({
    value: "g.result",
    join: `left join (
      select id, claim_no, result
      from rows from (unnest(${at(p, 10)}::uuid[]), unnest(${at(p, 3)}::int[]), json_array_elements(${at(p, 4)}::json))
        g (id, claim_no, result)
      where json_typeof(result) <> 'null'
    ) g on g.id = s.id and g.claim_no = s.claim_no`,
  }),
  none: (p: number) => ({ value: `${at(p, 4)}::json`, join: `where ${at(p, 10)}::text is null` }),
};

type Locate = keyof typeof wanted;
type Results = keyof typeof results;

interface Way {
  readonly locate: Locate;
  readonly result: Results;
  readonly leave: Leaving;
  readonly queues: Queues;
}

/** How long a row is kept is its queue's to say; mostly there is only one. */
const retentions = {
  one: { value: "(select retention_days from retention)", join: "" },
  several: {
    value:
      "coalesce(r.retention_days, (select q.retention_days from millrace.queue q where q.id = s.queue_id))",
    join: "left join retention r on r.id = s.queue_id",
  },
};
type Queues = keyof typeof retentions;

/** Only a batch with jobs that count for their tenant pays for counting them out. */
const leaving = {
  plain: () => "",
  counted: (p: number) => `
  tenants_counted as (${countTenants("settled", "-", `${at(p, 6)}::uuid`)}),`,
};
type Leaving = keyof typeof leaving;

function settle(p: number, { locate, result, leave, queues }: Way): string {
  const { value, join } = results[result](p);
  const retention = retentions[queues];
  return `held as materialized (select ${at(p, 2)}::uuid[] as claims),
  retention as materialized (
    select id, retention_days from millrace.queue where id = any(${at(p, 11)}::int[])
  ),
  settled as (
    delete from millrace.job j
    where j.ctid = any (array(
      select found.tid from held cross join rows from (${wanted[locate](p)}
    )) and j.claim_id = any ((select claims from held)::uuid[])
    returning j.*
  ),
  archived as (
    insert into millrace.history (id, state, created_at, started_at, finished_at, claim_id, queue_id, claim_no,
      retention_days, weight, attempt, max_attempts, crash_count, type, tenant, worker, payload, result,
      correlation_id, idempotency_key, reference, meta, timeline)
    select s.id, 'completed', s.created_at, s.started_at, now(), s.claim_id, s.queue_id, s.claim_no,
      ${retention.value}, s.weight,
      s.attempt, s.max_attempts, s.crash_count, s.type, s.tenant, ${at(p, 5)}::text, s.payload, ${value}, s.correlation_id, s.idempotency_key,
      s.reference, s.meta, s.timeline
    from settled s ${retention.join} ${join}
  ),
  counted as (
    insert into millrace.queue_count (queue_id, process, minute, completed)
    select queue_id, ${at(p, 6)}::uuid, date_trunc('minute', now()), count(*) from settled group by queue_id
    on conflict (queue_id, process, minute) do update set completed = queue_count.completed + excluded.completed
  ),${leaving[leave](p)}
  finished as (
    delete from millrace.claim where id = any(${at(p, 7)}::uuid[])
  )`;
}

const completed = (p: number) => `null::uuid, count(*)::int,
    case when count(*) < ${at(p, 9)}::int then array_to_string(array_agg(id), ',') end`;

const nameOf = ({ locate, result, leave, queues }: Way) =>
  `${locate}_${result}${leave === "counted" ? "_counted" : ""}${queues === "one" ? "" : "_several"}`;

const settleOnly = (way: Way) =>
  statement(
    `settle_by_${nameOf(way)}`,
    `with ${settle(0, way)} select ${completed(0)} from settled`,
  );

function settleAndClaim(way: Way, claim: ClaimWay) {
  const { parameters: p, text } = claims[claim];
  return statement(
    `turn_by_${nameOf(way)}_${claim}`,
    `with recursive ${text}, ${settle(p, way)}
  select ${completed(p)}, null, null, null, null, null, null, null, null, null, null, null, null
  from settled
  union all
  ${selectClaimed(claim)}`,
  );
}

/** The statements of one way to find what is settled: alone, or with a claim. */
const waysOf = (way: Way) => ({
  only: settleOnly(way),
  scan: settleAndClaim(way, "scan"),
  hint: settleAndClaim(way, "hint"),
  one: settleAndClaim(way, "one"),
  place: settleAndClaim(way, "place"),
});

const known = new Map<string, ReturnType<typeof waysOf>>();

function statementsOf(way: Way): ReturnType<typeof waysOf> {
  const name = nameOf(way);
  const found = known.get(name) ?? waysOf(way);
  known.set(name, found);
  return found;
}

interface Settling {
  readonly statements: ReturnType<typeof waysOf>;
  readonly parameters: (string | null)[];
}

function settlingOf(turn: Turn, completions: readonly Completion[], byPlace: boolean): Settling {
  const result = completions.some((c) => c.result !== undefined) ? "given" : "none";
  const leave = completions.some((c) => c.counted === true) ? "counted" : "plain";
  const claims = new Map<string, number>();
  const found: string[] = [];
  const seqs: number[] = [];
  const claimNos: number[] = [];
  const nths: number[] = [];
  const queueIds = new Set<number>();
  for (const { id, token, place, queueId } of completions) {
    const nth = claims.get(token.claimId) ?? claims.size + 1;
    claims.set(token.claimId, nth);
    nths.push(nth);
    claimNos.push(token.claimNo);
    queueIds.add(queueId);
    if (byPlace && place !== undefined) {
      found.push(place.tid);
      seqs.push(place.seq);
    } else found.push(id);
  }
  return {
    statements: statementsOf({
      locate: byPlace ? "place" : "id",
      result,
      leave,
      queues: queueIds.size === 1 ? "one" : "several",
    }),
    parameters: [
      byPlace ? `{"${found.join('","')}"}` : `{${found.join(",")}}`,
      `{${[...claims.keys()].join(",")}}`,
      `{${claimNos.join(",")}}`,
      result === "given" ? `[${completions.map((c) => c.result ?? "null").join(",")}]` : null,
      turn.worker,
      turn.process,
      arrayText(turn.finishedClaims),
      `{${nths.join(",")}}`,
      String(completions.length),
      result === "given" ? `{${completions.map((c) => c.id).join(",")}}` : null,
      arrayText([...queueIds]),
      byPlace ? `{${seqs.join(",")}}` : null,
    ],
  };
}

/** `habits` are kept from one turn to the next. */
export async function takeTurn(
  connection: Connection,
  turn: Turn,
  habits = new Habits(),
): Promise<Turned> {
  const { claim, completions } = turn;
  const { usual } = habits;
  if (completions.length === 0) {
    if (claim === null) return { completed: null, jobs: [] };
    const rows = await connection.rows(claimOnly[wayOf(claim)], claimParameters(claim, usual));
    const jobs = toJobs(claim.claimId, rows, usual);
    habits.learn(jobs);
    return { completed: null, jobs };
  }
  const byPlace = completions.every(({ place }) => place !== undefined);
  const { statements, parameters } = settlingOf(turn, completions, byPlace);
  if (claim === null) {
    const rows = await connection.rows(statements.only, parameters);
    return { completed: await completeMissing(connection, turn, completedOf(rows)), jobs: [] };
  }
  const [first = [], ...rows] = await connection.rows(statements[wayOf(claim)], [
    ...claimParameters(claim, usual),
    ...parameters,
  ]);
  const settled = await completeMissing(connection, turn, completedOf([first]));
  const jobs = toJobs(claim.claimId, rows, usual);
  habits.learn(jobs);
  return { completed: settled, jobs };
}

function completedOf(rows: unknown[][]): ReadonlySet<string> | null {
  const [, count, ids] = rows[0] ?? [];
  if (count === 0) return none;
  return typeof ids === "string" ? new Set(ids.split(",")) : null;
}

const none: ReadonlySet<string> = new Set();

/** Whoever is missing is looked for again, by id, before it counts as superseded. */
async function completeMissing(
  connection: Connection,
  turn: Turn,
  completed: ReadonlySet<string> | null,
): Promise<ReadonlySet<string> | null> {
  if (completed === null) return null;
  const all = new Set(completed);
  const settle = async (missing: readonly Completion[]) => {
    const { statements, parameters } = settlingOf({ ...turn, finishedClaims: [] }, missing, false);
    const found = completedOf(await connection.rows(statements.only, parameters));
    const settled = found ?? new Set(missing.map(({ id }) => id));
    for (const id of settled) all.add(id);
    return settled;
  };
  const missing = turn.completions.filter(({ id }) => !completed.has(id));
  const look = standing((source, values) => connection.rows(source, values));
  await untilGone(missing, settle, look);
  return all;
}
