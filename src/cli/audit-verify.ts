import { verifyAudit } from "../client/audit.ts";
import { type Command, textOption, UsageError, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";

export const auditVerify: Command = {
  name: "audit verify",
  summary: "check that nobody has changed the audit trail",
  help: `millrace audit verify – check that nobody has changed the audit trail

Usage: millrace audit verify [options]

Makes every hash again from what its entry says, from the first to the last. Keep the head it
prints somewhere else: with it the next check also tells whether the end was cut off. Exits
with 1 when the trail is broken.

Options:
  --expect <no:hash>  a head from before, which must still be in the trail
${databaseHelp}
  --json             what was found as JSON
  -h, --help         this text

Examples:
  npx millrace audit verify
  npx millrace audit verify --json
`,
  options: { expect: { type: "string" }, ...databaseOptions, json: { type: "boolean" } },
  async run(values, terminal) {
    const expected = expectedHead(values);
    return withMillrace(values, terminal, async (millrace) => {
      const found = await verifyAudit(millrace.store.service.audit, expected);
      const { ok, entries, head, brokenAt, problem } = found;
      if (values.json === true)
        terminal.print(JSON.stringify({ ok, entries, head, broken_at: brokenAt, problem }));
      else if (ok) terminal.print(`Whole: ${entries} entries, head ${head.no}:${head.hash}`);
      else terminal.printError(`Broken at entry ${brokenAt}: ${problem}.`);
      return ok ? 0 : 1;
    });
  },
};

function expectedHead(values: Values): { no: number; hash: string } | undefined {
  const text = textOption(values, "expect");
  if (text === undefined) return undefined;
  const [, no, hash] = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text) ?? [];
  if (no === undefined || hash === undefined) throw new UsageError("--expect is <no>:<hash>.");
  return { no: Number(no), hash };
}
