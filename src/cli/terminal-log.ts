// Log lines for a person at a terminal: time, level, message and fields, with nothing a terminal obeys.

import { systemClock } from "../runtime/clock.ts";
import type { Log } from "../runtime/log.ts";
import type { Terminal } from "./terminal.ts";
import { plain } from "./text.ts";

const levels = ["trace", "debug", "info", "warn", "error", "fatal", "silent"];
const colours = { debug: "gray", info: "cyan", warn: "yellow", error: "red" } as const;
type Level = keyof typeof colours;

/** `childLevel` is for those who log for themselves: handlers. The rest is about us. */
export function createTerminalLog(
  terminal: Terminal,
  level: string,
  childLevel = level,
  bound: object = {},
): Log {
  const lowest = levels.indexOf(level);
  const at = (name: Level) => (first: object | string, second?: string) => {
    if (levels.indexOf(name) < lowest) return;
    const given = typeof first === "string" ? {} : first;
    const message = typeof first === "string" ? first : (second ?? "");
    terminal.printError(line(terminal, name, message, { ...bound, ...given }));
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => createTerminalLog(terminal, childLevel, childLevel, { ...bound, ...fields }),
  };
}

/** What every line of a job carries; its id tells the rest. */
const known = new Set(["payload", "queue", "tenant", "worker", "claim", "lease", "correlationId"]);

function line(terminal: Terminal, level: Level, message: string, fields: object): string {
  const time = systemClock.now().toISOString().slice(11, 19);
  const shown = Object.entries(fields)
    .filter(([name, value]) => !known.has(name) && value !== undefined)
    .map(([name, value]) => `${name}=${plain(textOf(value))}`);
  const tail = shown.length === 0 ? "" : `  ${terminal.style("gray", shown.join(" "))}`;
  return `${time} ${terminal.style(colours[level], level.padEnd(5))} ${plain(message)}${tail}`;
}

function textOf(value: unknown): string {
  if (typeof value === "string") return value;
  if (value instanceof Error) return value.message;
  return JSON.stringify(value) ?? String(value);
}
