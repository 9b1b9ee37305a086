import { checkOptions, checkText, type Known, knownNames } from "../domain/check-options.ts";
import { MillraceError } from "../domain/errors.ts";
import type { DeadLetterFilter } from "../store/store.ts";
import { checkNumber, isName } from "../worker/job-definition.ts";
import { checkId } from "./check-id.ts";

const texts = { queue: true, tenant: true, fingerprint: true, type: true } as const;
const known = knownNames({ ids: true, ...texts } satisfies Known<DeadLetterFilter>);

export function checkKey(key: string, tenant: string): void {
  checkText("A key", key, 1_000);
  checkText("A tenant", tenant, 1_000);
}

/** Of one that is there: what other ways in may have named is found, too. */
export const checkQueueName = (name: string) => checkText("A queue's name", name, 200);

/** Of one that may be made. */
export function checkNameOf(owner: "queue" | "tenant", name: unknown): void {
  if (isName(name)) return;
  throw new MillraceError(
    "OPTION_INVALID",
    `A ${owner}'s name must be a text of 1 to 200 printable characters.`,
  );
}

export function checkDeadLetterQuery(filter: DeadLetterFilter, limit: number): void {
  checkOptions("dead letters", filter, known);
  const { ids } = filter;
  if (ids !== undefined && !Array.isArray(ids))
    throw new MillraceError("OPTION_INVALID", "ids must be a list of job ids.");
  for (const id of ids ?? []) checkId("job", id);
  for (const name of Object.keys(texts) as (keyof typeof texts)[]) {
    if (filter[name] !== undefined) checkText(name, filter[name], 1_000);
  }
  checkNumber("limit", limit, 0, 2_147_483_647);
}
