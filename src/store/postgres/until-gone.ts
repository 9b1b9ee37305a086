// Whoever changes a row in the same moment, as a cancel does, replaces the one that a statement has found, and the
// statement passes over it. So who is missing has been superseded only when nothing stands under its token any more:
// a run that is taken for superseded is given up, and its job would be nobody's.

import { MillraceError } from "../../domain/errors.ts";
import type { Token } from "../../domain/token.ts";
import { type Statement, statement } from "./statement.ts";

export interface HeldRun {
  readonly id: string;
  readonly token: Token;
}

const stillHeld = statement(
  "still_held",
  `select i.id from json_to_recordset($1::json) as i (id uuid, claim_id uuid, claim_no int)
  cross join lateral (
    select from millrace.job j where j.id = i.id and j.claim_id = i.claim_id and j.claim_no = i.claim_no limit 1
  ) found`,
);

type RunAny = (source: Statement, values: string[]) => Promise<readonly unknown[]>;
type Look<R> = (runs: readonly R[]) => Promise<ReadonlySet<unknown>>;

/** So often nobody changes a row by chance. */
const mostTries = 100;

/** `settle` answers which of them took effect, `look` which still stand. */
export async function untilGone<R extends HeldRun>(
  runs: readonly R[],
  settle: Look<R>,
  look: Look<R>,
): Promise<void> {
  let missing = runs;
  for (let tries = 0; missing.length > 0 && tries < mostTries; tries++) {
    const settled = await settle(missing);
    missing = missing.filter(({ id }) => !settled.has(id));
    if (missing.length === 0) return;
    const standing = await look(missing);
    missing = missing.filter(({ id }) => standing.has(id));
  }
  if (missing.length > 0)
    throw new MillraceError("TIMEOUT", "Others changed the jobs each time they were settled.");
}

export const standing =
  (run: RunAny): Look<HeldRun> =>
  async (runs) => {
    const rows = runs.map(({ id, token }) => ({
      ...{ id, claim_id: token.claimId, claim_no: token.claimNo },
    }));
    return new Set((await run(stillHeld, [JSON.stringify(rows)])).map(idOf));
  };

/** A row as a list, or by its columns. */
const idOf = (row: unknown): unknown => (Array.isArray(row) ? row[0] : (row as { id: string }).id);
