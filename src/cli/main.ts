#!/usr/bin/env node
import { loadTerminalSettings, type TerminalSettings } from "../config.ts";
import { runCommandLine } from "./run.ts";
import { Terminal } from "./terminal.ts";

/** A bad LOG_LEVEL must not keep the help from being read; whoever connects will refuse it. */
function settings(): TerminalSettings {
  try {
    return loadTerminalSettings();
  } catch {
    return { colour: false, logLevel: undefined };
  }
}

const terminal = new Terminal(settings(), process.stdout, process.stderr);
// Whoever reads our output may leave before its end (| head): that is no failure.
terminal.onClosed(() => undefined);
process.exitCode = await runCommandLine(process.argv.slice(2), terminal);
