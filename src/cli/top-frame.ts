// One picture of `millrace top`: as many lines as the terminal has, none longer than it is wide.

import type { Breaker } from "../store/breaker.ts";
import type { QueueFigures } from "../store/queue-admin.ts";
import type { Leadership, WorkerPresence } from "../store/store.ts";
import { stateOf } from "./queues-list.ts";
import { age, clip, count, plain, widthOf } from "./text.ts";

export interface QueueRow extends QueueFigures {
  readonly inPerSecond: number;
  readonly donePerSecond: number;
}

export interface TopView {
  readonly database: string;
  readonly dispatch: string;
  readonly at: Date;
  readonly leadership: Leadership;
  readonly workers: readonly WorkerPresence[];
  readonly breakers: readonly Breaker[];
  readonly queues: readonly QueueRow[];
  /** The last reading failed: what is shown is what was before. */
  readonly problem: string | null;
}

/** What the keys have changed. */
export interface TopChoice {
  readonly sortBy: number;
  readonly reversed: boolean;
  readonly scroll: number;
}

export interface Paint {
  readonly columns: number;
  readonly rows: number;
  style(name: "bold" | "inverse" | "red" | "yellow" | "green" | "gray", text: string): string;
}

interface TopColumn {
  readonly title: string;
  readonly width: number;
  readonly value: (queue: QueueRow) => string;
  /** Numbers: the largest first. */
  readonly order: ((queue: QueueRow) => number) | null;
}

const numbers: readonly TopColumn[] = [
  { title: "WAITING", width: 9, value: (q) => short(q.waiting), order: (q) => q.waiting },
  { title: "RUNNING", width: 9, value: (q) => short(q.running), order: (q) => q.running },
  {
    title: "OLDEST",
    width: 8,
    value: ({ oldestReadySeconds }) =>
      oldestReadySeconds === null ? "-" : age(oldestReadySeconds),
    order: ({ oldestReadySeconds }) => oldestReadySeconds ?? -1,
  },
  { title: "IN/S", width: 8, value: (q) => short(q.inPerSecond), order: (q) => q.inPerSecond },
  {
    title: "DONE/S",
    width: 8,
    value: (q) => short(q.donePerSecond),
    order: (q) => q.donePerSecond,
  },
  { title: "DEAD", width: 7, value: (q) => short(q.dead), order: (q) => q.dead },
];

/** The names take what the numbers leave. */
function columnsFor(width: number): TopColumn[] {
  const taken = numbers.reduce((sum, column) => sum + column.width, 0) + 10;
  return [
    {
      title: "QUEUE",
      width: Math.max(8, width - taken),
      value: (queue) => clip(nameOf(queue), Math.max(8, width - taken) - 1),
      order: null,
    },
    { title: "STATE", width: 10, value: stateOf, order: null },
    ...numbers,
  ];
}

export const sortable = 2 + numbers.length;
/** By what waits, unless told. */
export const firstSort = 2;

const nameOf = ({ name, tenant }: QueueFigures): string =>
  tenant === "" ? plain(name) : `${plain(name)} (${plain(tenant)})`;

/** At most six characters. */
function short(value: number): string {
  if (value < 10 && !Number.isInteger(value)) return value.toFixed(1);
  const whole = Math.round(value);
  if (whole < 100_000) return whole.toLocaleString("en");
  if (whole < 10_000_000) return `${Math.floor(whole / 1_000).toLocaleString("en")}k`;
  return `${Math.floor(whole / 1_000_000).toLocaleString("en")}M`;
}

export function frame(view: TopView, choice: TopChoice, paint: Paint): string[] {
  const head = header(view, paint);
  const below = [...workerLines(view, paint), ...breakerLines(view, paint)];
  const foot = footer(choice, paint);
  const room = Math.max(2, paint.rows - head.length - below.length - 1);
  const lines = [...head, ...queueLines(view, choice, paint, room), ...below];
  // What does not fit is cut at the end, so that the keys stay in sight.
  const shown = lines.slice(0, paint.rows - 1);
  return [...shown, ...Array<string>(Math.max(0, paint.rows - 1 - shown.length)).fill(""), foot];
}

function header(view: TopView, paint: Paint): string[] {
  const { leadership, workers, queues, breakers, problem } = view;
  const sum = (of: (queue: QueueRow) => number) => queues.reduce((all, one) => all + of(one), 0);
  const oldest = Math.max(-1, ...queues.map(({ oldestReadySeconds }) => oldestReadySeconds ?? -1));
  const time = `${view.at.toISOString().slice(11, 19)} UTC`;
  const title = clip(`millrace top  ${plain(view.database)}`, paint.columns - time.length - 2);
  const gap = " ".repeat(Math.max(1, paint.columns - widthOf(title) - time.length));
  const live = workers.filter(({ state }) => state === "live");
  const slots = live.reduce((all, one) => all + concurrencyOf(one), 0);
  const open = breakers.filter(({ state }) => state !== "CLOSED").length;
  const parts = [
    leadership.inOffice ? `leader: term ${leadership.term}` : "no leader",
    `${count(live.length, "worker")}, ${slots} slots`,
    `dispatch: ${view.dispatch}`,
    `breakers: ${open} of ${breakers.length} open`,
  ];
  const totals = [
    `${short(sum((q) => q.donePerSecond))} done/s`,
    `${short(sum((q) => q.inPerSecond))} in/s`,
    `${short(sum((q) => q.waiting))} waiting`,
    `${short(sum((q) => q.running))} running`,
    `oldest ${oldest < 0 ? "-" : age(oldest)}`,
    `${short(sum((q) => q.dead))} dead`,
  ];
  const trouble = problem ?? (leadership.inOffice ? null : "No manager is leader.");
  return [
    `${paint.style("bold", title)}${gap}${time}`,
    clip(parts.join("   "), paint.columns),
    paint.style("bold", clip(totals.join("   "), paint.columns)),
    trouble === null ? "" : paint.style("red", clip(plain(trouble), paint.columns)),
  ];
}

function queueLines(view: TopView, choice: TopChoice, paint: Paint, room: number): string[] {
  const columns = columnsFor(paint.columns);
  const titles = columns.map(({ title, width }, at) =>
    cell(at === choice.sortBy ? `${title}${choice.reversed ? "▲" : "▼"}` : title, width, at),
  );
  const sorted = sortQueues(view.queues, choice, columns);
  const first = Math.min(choice.scroll, Math.max(0, sorted.length - (room - 1)));
  const shown = sorted.slice(first, first + room - 1);
  const lines = shown.map((queue) => {
    const text = columns.map(({ value, width }, at) => cell(value(queue), width, at)).join("");
    const line = clip(text, paint.columns);
    if (queue.paused || !queue.isActive) return paint.style("yellow", line);
    return queue.waiting + queue.running === 0 ? paint.style("gray", line) : line;
  });
  if (sorted.length === 0) lines.push("There is no queue yet.");
  const title = clip(titles.join(""), paint.columns).padEnd(paint.columns);
  return [paint.style("inverse", title), ...lines].slice(0, room);
}

/** The first two columns are words and stand at the left. */
function cell(text: string, width: number, at: number): string {
  const clipped = clip(text, width);
  const space = " ".repeat(width - widthOf(clipped));
  return at < firstSort ? clipped + space : space + clipped;
}

export function sortQueues(
  queues: readonly QueueRow[],
  { sortBy, reversed }: TopChoice,
  columns: readonly TopColumn[] = columnsFor(80),
): QueueRow[] {
  const column = columns[sortBy];
  const byName = (a: QueueRow, b: QueueRow) => nameOf(a).localeCompare(nameOf(b), "en");
  const sorted = [...queues].sort((a, b) => {
    if (column === undefined) return byName(a, b);
    const { order, value } = column;
    const difference =
      order === null ? value(a).localeCompare(value(b), "en") : order(b) - order(a);
    return difference || byName(a, b);
  });
  return reversed ? sorted.reverse() : sorted;
}

const concurrencyOf = ({ info }: WorkerPresence): number =>
  Number((info as { readonly concurrency?: unknown } | null)?.concurrency ?? 0);

const runningOf = ({ running }: WorkerPresence): number =>
  Object.values(running).reduce((all, jobs) => all + jobs, 0);

function workerLines({ workers, at }: TopView, paint: Paint): string[] {
  if (workers.length === 0) return ["", paint.style("yellow", "No worker is alive.")];
  const most = Math.max(1, Math.floor(paint.rows / 5));
  const lines = workers.slice(0, most).map((worker) => {
    const seconds = (at.getTime() - worker.renewedAt.getTime()) / 1_000;
    const types = Object.entries(worker.running).map(([type, jobs]) => `${plain(type)} ${jobs}`);
    const held = `${runningOf(worker)} of ${concurrencyOf(worker)}`;
    const text = `${clip(plain(worker.name), 26).padEnd(27)}${held.padEnd(13)}seen ${age(Math.max(0, seconds))} ago  ${types.join(", ")}`;
    const line = clip(text, paint.columns);
    return worker.state === "live"
      ? line
      : paint.style("red", clip(`${plain(worker.name)} died`, paint.columns));
  });
  const left = workers.length - most;
  const more = left > 0 ? [paint.style("gray", `… and ${left} more`)] : [];
  return ["", paint.style("bold", "WORKERS"), ...lines, ...more];
}

function breakerLines({ breakers }: TopView, paint: Paint): string[] {
  const open = breakers.filter(({ state }) => state !== "CLOSED");
  if (open.length === 0) return [];
  const most = Math.max(1, Math.floor(paint.rows / 8));
  const lines = open.slice(0, most).map(({ name, state, lastError, reason }) => {
    const text = `${plain(name).padEnd(27)}${state.padEnd(13)}${plain(reason ?? lastError ?? "")}`;
    return paint.style("red", clip(text, paint.columns));
  });
  return ["", paint.style("bold", "BREAKERS"), ...lines];
}

function footer({ sortBy, reversed }: TopChoice, paint: Paint): string {
  const by = columnsFor(paint.columns)[sortBy]?.title.toLowerCase() ?? "";
  const text = `q quit   ←→ sort by: ${by}${reversed ? " (reversed)" : ""}   r reverse   ↑↓ scroll`;
  return paint.style("gray", clip(text, paint.columns));
}
