// Fields that many requests and responses share.

import { z } from "zod";

const printable = /^[\p{L}\p{N}\p{P}\p{S} ]+$/u;

/** PostgreSQL stores neither NUL nor half a surrogate pair. */
const isStorable = (text: string) => !text.includes("\u0000") && text.isWellFormed();

export const name = z
  .string()
  .min(1)
  .max(200)
  .regex(printable, "must be printable characters")
  .refine((value) => value.trim() !== "", "must not be blank");

export const text = (longest: number) =>
  z.string().max(longest).refine(isStorable, "has characters that cannot be stored");

export const notes = text(2_000)
  .refine((value) => value.trim() !== "", "must not be blank")
  .describe("Why. Kept in the audit trail.");

export const id = z.guid().describe("UUID");
export const queueId = z.coerce.number().int().min(1).max(2_147_483_647);
export const time = z.iso.datetime({ offset: true });
export const timeOut = z.iso.datetime();

export const tenantId = name.describe(
  "The tenant. A key that belongs to a tenant may only name its own.",
);

export const labelPaths = z
  .array(name.refine((path) => !path.includes(":"), "must not have a colon"))
  .max(10)
  .describe('Paths of payload fields, such as "order.id", that the job can be found by.');

export const orderingKey = name.describe("Jobs of one key and tenant run one at a time, in order.");
export const limitKey = name.describe(
  "Jobs of one key and tenant share the queue's key_concurrency and key_throttle. Not beside an ordering_key.",
);

export const paging = {
  limit: z.coerce.number().int().min(1).max(200).default(50),
  cursor: z.string().max(500).optional().describe("`next_cursor` of the page before."),
};

/** Of lists that are short for almost everybody. */
export const longPaging = {
  ...paging,
  limit: z.coerce.number().int().min(1).max(200).default(200),
};

/** "true" and "false" as they stand in a query. */
export const flag = z.enum(["true", "false"]).transform((value) => value === "true");

/** Words separated by commas. */
export const words = <const W extends readonly [string, ...string[]]>(allowed: W) =>
  z
    .string()
    .max(500)
    .transform((value) => value.split(","))
    .pipe(z.array(z.enum(allowed)).min(1));

export const nextCursor = z
  .string()
  .nullable()
  .describe("Where the next page begins; null: there is none. A page may be short before that.");
