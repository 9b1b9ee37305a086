// The numbers of `millrace dev`, and the one line that shows them.

import type { Millrace } from "../client/millrace.ts";
import type { Terminal } from "./terminal.ts";

export interface Progress {
  readonly jobsPerSecond: number;
  readonly waiting: number;
  readonly running: number;
  readonly completed: number;
  readonly retried: number;
  readonly dead: number;
}

const windowMs = 3_000;

/** Counts are the database's, of all processes; running jobs are this process's own. */
export class ProgressReader {
  readonly #millrace: Millrace;
  readonly #running: () => number;
  readonly #now: () => number;
  #seen: { at: number; completed: number }[] = [];

  constructor(millrace: Millrace, running: () => number, now: () => number) {
    this.#millrace = millrace;
    this.#running = running;
    this.#now = now;
  }

  async read(): Promise<Progress> {
    const queues = await this.#millrace.queues();
    const sum = (name: "completed" | "retried" | "dead" | "depth") =>
      queues.reduce((total, { counts }) => total + counts[name], 0);
    const running = this.#running();
    const completed = sum("completed");
    return {
      jobsPerSecond: this.#rate(completed),
      waiting: Math.max(0, sum("depth") - running),
      running,
      completed,
      retried: sum("retried"),
      dead: sum("dead"),
    };
  }

  #rate(completed: number): number {
    const at = this.#now();
    this.#seen.push({ at, completed });
    while (this.#seen.length > 2 && at - (this.#seen[1]?.at ?? at) >= windowMs) this.#seen.shift();
    const first = this.#seen[0];
    if (first === undefined || at === first.at) return 0;
    return ((completed - first.completed) / (at - first.at)) * 1_000;
  }
}

export function progressLine(progress: Progress, terminal: Terminal, columns: number): string {
  const parts = [
    { text: `${amount(progress.jobsPerSecond)} jobs/s`, style: "bold" as const },
    { text: `${amount(progress.waiting)} waiting` },
    { text: `${amount(progress.running)} running` },
    { text: `${amount(progress.completed)} completed`, style: "green" as const },
    { text: `${amount(progress.retried)} retried`, style: "yellow" as const },
    { text: `${amount(progress.dead)} dead`, style: "red" as const },
  ];
  let width = 0;
  const shown: string[] = [];
  for (const { text, style } of parts) {
    width += text.length + separator.length;
    if (width > columns) break;
    shown.push(style === undefined ? text : terminal.style(style, text));
  }
  return shown.join(separator);
}

const separator = "  ";

/** At most six characters, so that the line keeps its width. */
function amount(value: number): string {
  if (value < 10 && !Number.isInteger(value)) return value.toFixed(1);
  const whole = Math.round(value);
  if (whole < 100_000) return whole.toLocaleString("en");
  if (whole < 10_000_000) return `${Math.floor(whole / 1_000).toLocaleString("en")}k`;
  return `${Math.floor(whole / 1_000_000).toLocaleString("en")}M`;
}

export function progressJson(progress: Progress, at: Date): string {
  const { jobsPerSecond, ...counts } = progress;
  const rounded = Math.round(jobsPerSecond * 10) / 10;
  return JSON.stringify({ at: at.toISOString(), jobs_per_second: rounded, ...counts });
}
