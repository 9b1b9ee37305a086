// Who did it, and why: what the audit trail keeps of a command.

import { textOption, UsageError, type Values } from "./command.ts";

export const actorOptions = { reason: { type: "string" }, actor: { type: "string" } } as const;

export const actorHelp = `  --reason <text>    why; stands in the audit trail
  --actor <name>     who; stands there too (default: cli)`;

export const actorOf = (values: Values): string => textOption(values, "actor") ?? "cli";

export function reasonOf(values: Values, verb: string): string {
  const reason = textOption(values, "reason");
  if (reason === undefined) throw new UsageError(`${verb} needs --reason.`);
  return reason;
}
