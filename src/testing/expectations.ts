// Assertions that say what was enqueued instead. node:assert only: every test runner understands it.

import { AssertionError } from "node:assert";
import type { Priorities } from "../domain/priority.ts";
import type { EnqueuedJob } from "./enqueued-job.ts";
import { differences, type JobMatch, show } from "./match.ts";

const mostListed = 10;

export function missing(
  type: string,
  match: JobMatch,
  wanted: number | undefined,
  matched: number,
  jobs: readonly EnqueuedJob[],
  priorities: Priorities,
): AssertionError {
  const times = wanted === undefined ? "a job" : count(wanted);
  const but = matched === 0 ? "there is none" : `there ${matched === 1 ? "is" : "are"} ${matched}`;
  const same = jobs.filter((job) => job.type === type);
  const listed = same.map((job) => `${describe(job)}${why(differences(job, match, priorities))}`);
  const others = [...new Set(jobs.map((job) => job.type))].filter((other) => other !== type);
  return new AssertionError({
    message: [
      `Expected ${times} of type "${type}"${describeMatch(match)} to have been enqueued, but ${but}.`,
      ...section(`Enqueued of this type: ${same.length}`, listed),
      ...(others.length === 0 ? [] : [`Other types: ${others.join(", ")}`]),
    ].join("\n"),
    actual: matched,
    expected: wanted ?? 1,
    operator: "assertEnqueued",
  });
}

export function unwanted(
  type: string,
  match: JobMatch,
  matched: readonly EnqueuedJob[],
): AssertionError {
  return new AssertionError({
    message: [
      `Expected no job of type "${type}"${describeMatch(match)} to have been enqueued, but there ` +
        `${matched.length === 1 ? "is 1" : `are ${matched.length}`}:`,
      ...section("", matched.map(describe)),
    ].join("\n"),
    actual: matched.length,
    expected: 0,
    operator: "assertNotEnqueued",
  });
}

const count = (jobs: number) => (jobs === 1 ? "exactly 1 job" : `exactly ${jobs} jobs`);

const why = (found: readonly string[]) =>
  found.length === 0 ? " – matches" : ` – ${found.join("; ")}`;

function section(title: string, lines: readonly string[]): string[] {
  const shown = lines.slice(0, mostListed).map((line, i) => `  ${i + 1}. ${line}`);
  const more = lines.length - shown.length;
  return [
    ...(title === "" ? [] : [title]),
    ...shown,
    ...(more > 0 ? [`  … and ${more} more`] : []),
  ];
}

function describe(job: EnqueuedJob): string {
  const delay = job.delayMs > 0 ? `, delay ${job.delayMs} ms` : "";
  return `${job.state}, queue "${job.queue}"${delay}, payload ${show(job.payload)}`;
}

function describeMatch(match: JobMatch): string {
  const parts = Object.entries(match).map(([name, value]) => `${name} ${show(value)}`);
  return parts.length === 0 ? "" : ` with ${parts.join(", ")}`;
}
