// Long payloads lie apart from their jobs, and stay there while these move from table to table: see
// docs/design/storage.md. A row whose own payload is null has it there.

const apart = (id: string, as: string) =>
  `(select l.payload${as} from millrace.long_payload l where l.job_id = ${id})`;

/** A job's payload wherever it lies; `row` with its dot, if it needs one. */
export const payloadOf = (row = "") => `coalesce(${row}payload, ${apart(`${row}id`, "::json")})`;

/** The same as a text, for who reads it anyway: nothing is parsed here. */
export const payloadTextOf = (row = "") =>
  `coalesce(${row}payload::text, ${apart(`${row}id`, "")})`;

/** Part of a statement that removes jobs for good. */
export const forgetPayloads = (ids: string) =>
  `delete from millrace.long_payload where job_id in (select id from ${ids})`;
