// A question before something that cannot be taken back. Without a person there must be --yes.

import { createInterface } from "node:readline/promises";
import { CommandError, type Values } from "./command.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Terminal } from "./terminal.ts";

export const confirmOptions = { yes: { type: "boolean", short: "y" } } as const;
export const confirmHelp = "  -y, --yes          do not ask";

export async function confirm(values: Values, terminal: Terminal, what: string): Promise<void> {
  if (values.yes === true) return;
  if (!terminal.isInteractive || process.stdin.isTTY !== true)
    throw new CommandError(
      `${what} Nobody is there to confirm it.`,
      "Add --yes if that is what you want.",
      exitCodes.unconfirmed,
    );
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  const gone = new AbortController();
  lines.once("close", () => gone.abort());
  try {
    const answer = await lines.question(`${what} Go on? [y/N] `, { signal: gone.signal });
    if (/^y(?:es)?$/i.test(answer.trim())) return;
  } catch {
    // Ctrl-C or Ctrl-D is a no.
  } finally {
    lines.close();
  }
  throw new CommandError("Nothing was changed.", "Answer y to go on.", exitCodes.unconfirmed);
}
