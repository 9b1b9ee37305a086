import type { Millrace } from "../client/millrace.ts";
import { systemClock } from "../runtime/clock.ts";
import { type Command, CommandError, durationOption, type Values } from "./command.ts";
import { databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { withoutPassword } from "./database-url.ts";
import { exitCodes } from "./exit-codes.ts";
import { StopRequest } from "./stop-request.ts";
import type { Terminal } from "./terminal.ts";
import {
  firstSort,
  frame,
  type QueueRow,
  sortable,
  sortQueues,
  type TopChoice,
  type TopView,
} from "./top-frame.ts";
import { type Key, TopScreen } from "./top-screen.ts";

const help = `millrace top – queues, workers and breakers, live

Usage: millrace top [options]

Keys: ← and → choose the column to sort by, r reverses, ↑ and ↓ scroll, q quits. Fits 80 × 24 and
grows with the terminal. Reads counters and indexes only, however many jobs there are.

Options:
  --once             print one picture and stop
  --interval <time>  how often to look (default: 1s)
${databaseHelp}
  --json             one JSON object, once
  -h, --help         this text

Examples:
  npx millrace top
  DATABASE_URL=postgres://localhost/app npx millrace top --interval 5s
  npx millrace top --once --json | jq '.queues[] | select(.oldest_ready_seconds > 60)'
`;

export const top: Command = {
  name: "top",
  summary: "queues, workers and breakers, live",
  help,
  options: {
    once: { type: "boolean" },
    interval: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values: Values, terminal: Terminal): Promise<number> {
    const intervalMs = Math.max(100, durationOption(values, "interval") ?? 1_000);
    const isOnce = values.once === true || values.json === true;
    if (!isOnce && (!terminal.isInteractive || process.stdin.isTTY !== true))
      throw new CommandError(
        "top needs a terminal.",
        "--once prints one picture, --json the numbers.",
        exitCodes.usage,
      );
    const stop = new StopRequest(terminal);
    try {
      return await withMillrace(values, terminal, async (millrace) => {
        const reader = new TopReader(millrace);
        await reader.read();
        if (isOnce) await once(reader, intervalMs, values.json === true, terminal, stop.signal);
        else await live(reader, intervalMs, terminal, stop);
        return 0;
      });
    } finally {
      stop.release();
    }
  },
};

const start: TopChoice = { sortBy: firstSort, reversed: false, scroll: 0 };

/** Rates need two looks. */
async function once(
  reader: TopReader,
  intervalMs: number,
  json: boolean,
  terminal: Terminal,
  stopped: AbortSignal,
): Promise<void> {
  await systemClock.sleep(intervalMs, stopped);
  const view = await reader.read();
  if (json) return terminal.print(JSON.stringify(topJson(view)));
  const { columns } = terminal;
  const rows = view.queues.length + view.workers.length + view.breakers.length + 12;
  const style = (name: Parameters<Terminal["style"]>[0], text: string) =>
    terminal.style(name, text);
  const lines = frame(view, start, { columns, rows, style }).slice(0, -1);
  while (lines.at(-1) === "") lines.pop();
  terminal.print(lines.map((line) => line.trimEnd()).join("\n"));
}

async function live(
  reader: TopReader,
  intervalMs: number,
  terminal: Terminal,
  stop: StopRequest,
): Promise<void> {
  const screen = new TopScreen(process.stdin, process.stdout);
  const style = (name: Parameters<Terminal["style"]>[0], text: string) =>
    terminal.style(name, text);
  let choice = start;
  const draw = () => screen.draw(frame(reader.view, choice, { ...screen.size, style }));
  screen.open({
    onKey(key) {
      if (key === "quit") return stop.request();
      choice = after(key, choice, reader.view.queues.length);
      draw();
    },
    onResize: draw,
  });
  try {
    while (!stop.signal.aborted) {
      draw();
      await systemClock.sleep(intervalMs, stop.signal);
      if (!stop.signal.aborted) await reader.tryToRead();
    }
  } finally {
    screen.close();
  }
}

function after(key: Key, choice: TopChoice, queues: number): TopChoice {
  const { sortBy, reversed, scroll } = choice;
  const turn = (by: number) => ({ ...choice, sortBy: (sortBy + by + sortable) % sortable });
  if (key === "left") return turn(-1);
  if (key === "right") return turn(1);
  if (key === "reverse") return { ...choice, reversed: !reversed };
  const by = key === "up" ? -1 : 1;
  return { ...choice, scroll: Math.min(Math.max(0, queues - 1), Math.max(0, scroll + by)) };
}

const windowMs = 5_000;

type Counted = ReadonlyMap<number, { readonly enqueued: number; readonly completed: number }>;

class TopReader {
  readonly #millrace: Millrace;
  #seen: { at: number; counts: Counted }[] = [];
  #view: TopView | undefined;

  constructor(millrace: Millrace) {
    this.#millrace = millrace;
  }

  get view(): TopView {
    if (this.#view === undefined) throw new Error("nothing was read yet");
    return this.#view;
  }

  async read(): Promise<TopView> {
    const { store, breakers, dispatch, databaseUrl } = this.#millrace;
    const figures = await store.service.queues.figures();
    const at = systemClock.monotonic();
    this.#seen.push({ at, counts: new Map(figures.map((one) => [one.id, one])) });
    while (this.#seen.length > 2 && at - (this.#seen[0]?.at ?? at) > windowMs) this.#seen.shift();
    this.#view = {
      database: withoutPassword(databaseUrl),
      dispatch,
      at: systemClock.now(),
      leadership: await store.leadership(),
      workers: await store.workers(),
      breakers: await breakers.list(),
      queues: figures.map((one) => ({ ...one, ...this.#rates(one.id, one) })),
      problem: null,
    };
    return this.#view;
  }

  /** A database that is away is shown as such; the numbers are those from before. */
  async tryToRead(): Promise<void> {
    try {
      await this.read();
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      this.#view = { ...this.view, at: systemClock.now(), problem: `No answer: ${why}` };
    }
  }

  #rates(id: number, now: { enqueued: number; completed: number }) {
    const [first] = this.#seen;
    const before = first?.counts.get(id) ?? { enqueued: 0, completed: 0 };
    const seconds = ((this.#seen.at(-1)?.at ?? 0) - (first?.at ?? 0)) / 1_000;
    const rate = (of: "enqueued" | "completed") =>
      seconds <= 0 ? 0 : Math.max(0, now[of] - before[of]) / seconds;
    return { inPerSecond: rate("enqueued"), donePerSecond: rate("completed") };
  }
}

const topJson = (view: TopView) => ({
  at: view.at.toISOString(),
  dispatch: view.dispatch,
  leader: { in_office: view.leadership.inOffice, term: view.leadership.term },
  queues: sortQueues(view.queues, start).map((queue: QueueRow) => ({
    name: queue.name,
    tenant_id: queue.tenant === "" ? null : queue.tenant,
    paused: queue.paused,
    waiting: queue.waiting,
    running: queue.running,
    dead: queue.dead,
    oldest_ready_seconds: queue.oldestReadySeconds,
    in_per_second: Math.round(queue.inPerSecond * 10) / 10,
    done_per_second: Math.round(queue.donePerSecond * 10) / 10,
  })),
  workers: view.workers.map(({ name, state, running }) => ({ name, state, running })),
  breakers: view.breakers.map(({ name, state }) => ({ name, state })),
});
