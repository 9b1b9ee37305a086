import { type ConnectOptions, checkConnect } from "../client/connect-options.ts";
import { Millrace } from "../client/millrace.ts";
import { loadConfig } from "../config.ts";
import { MillraceError } from "../domain/errors.ts";
import { whole } from "../domain/setting-values.ts";
import { systemClock } from "../runtime/clock.ts";
import { Database } from "../store/postgres/database.ts";
import type { UpkeepSession } from "../store/store.ts";
import type { AnyJobDefinition } from "../worker/job-definition.ts";
import { drain } from "./drain.ts";
import type { DrainOptions } from "./drain-options.ts";
import type { Drained } from "./drained.ts";
import { readEnqueued, startRecord } from "./enqueue-record.ts";
import type { EnqueuedJob } from "./enqueued-job.ts";
import { missing, unwanted } from "./expectations.ts";
import { checkMatch, type JobMatch, type JobRef, matching, typeOf } from "./match.ts";
import { createThrowAway, type ThrowAway } from "./throw-away.ts";
import { passTime } from "./virtual-time.ts";

export type TestMillraceOptions = Omit<ConnectOptions, "dataDir" | "schema" | "migrate">;

/** PostgreSQL's times begin in 4713 BC: what is made older by this is far from there. */
const longestAdvanceMs = 1_000 * 365 * 86_400_000;

/** A Millrace on a throw-away database, and what a test wants to do with it. */
export class TestMillrace {
  readonly millrace: Millrace;
  readonly #place: ThrowAway;
  readonly #database: Database;
  readonly #upkeep: UpkeepSession;
  #stopping: Promise<void> | null = null;

  /** Private, so that its declaration has no driver's types: a user's compiler may not have them. */
  private constructor(millrace: Millrace, place: ThrowAway, database: Database) {
    this.millrace = millrace;
    this.#place = place;
    this.#database = database;
    this.#upkeep = millrace.store.upkeep();
  }

  static async create(options: TestMillraceOptions = {}): Promise<TestMillrace> {
    checkConnect("createTestMillrace", options);
    const quiet = { logLevel: "silent", random: () => 0.5, ...options };
    const place = await createThrowAway(loadConfig(quiet).databaseUrl);
    try {
      const { url, schema } = place;
      const millrace = await Millrace.connect({ ...quiet, databaseUrl: url, schema });
      const { events, config } = millrace;
      const { queryTimeoutMs } = config;
      const own = { url, schema, poolSize: 1, queryTimeoutMs, events, clock: systemClock };
      const database = new Database({ ...own, random: Math.random });
      await startRecord(database);
      return new TestMillrace(millrace, place, database);
    } catch (error) {
      await place.drop();
      throw error;
    }
  }

  /** Runs what is ready (and what that enqueues) in this process until nothing is left. */
  readonly drain = async (
    definitions: readonly AnyJobDefinition[],
    options: DrainOptions = {},
  ): Promise<Drained> => {
    this.#refuseStopped();
    return drain(definitions, options, {
      ...this.#keepers,
      millrace: this.millrace,
      clock: systemClock,
    });
  };

  /** Lets virtual time pass: delayed and retrying jobs fall due, others expire. */
  readonly advance = async (ms: number): Promise<void> => {
    this.#refuseStopped();
    const isLength = typeof ms === "number" && ms >= 0 && ms <= longestAdvanceMs;
    if (!isLength)
      throw new MillraceError(
        "OPTION_INVALID",
        "advance(ms) needs milliseconds, from 0 to those of 1,000 years.",
      );
    await passTime(ms, this.#keepers);
  };

  /** Everything that was enqueued, in order, whatever became of it. */
  readonly enqueued = async <Input = unknown>(
    job?: JobRef<Input>,
    match: JobMatch<Input> = {},
  ): Promise<EnqueuedJob[]> => {
    const { priorities } = this.millrace.config;
    const wanted = job === undefined ? undefined : typeOf(job);
    checkMatch(match, priorities);
    const all = await this.#readAll();
    const ofType = wanted === undefined ? all : all.filter(({ type }) => type === wanted);
    return matching(ofType, match, priorities);
  };

  /** At least one such job, or exactly `count`; gives the first. */
  readonly assertEnqueued = async <Input = unknown>(
    job: JobRef<Input>,
    match: JobMatch<Input> & { readonly count?: number } = {},
  ): Promise<EnqueuedJob> => {
    const { priorities } = this.millrace.config;
    const type = typeOf(job);
    checkMatch(match, priorities, ["count"]);
    const { count, ...rest } = match;
    if (count !== undefined) whole("count", count, 1);
    const all = await this.#readAll();
    const ofType = all.filter((one) => one.type === type);
    const found = matching(ofType, rest, priorities);
    const [first] = found;
    if (first === undefined || (count !== undefined && found.length !== count))
      throw missing(type, rest, count, found.length, all, priorities);
    return first;
  };

  readonly assertNotEnqueued = async <Input = unknown>(
    job: JobRef<Input>,
    match: JobMatch<Input> = {},
  ): Promise<void> => {
    const type = typeOf(job);
    const found = await this.enqueued(type, match);
    if (found.length > 0) throw unwanted(type, match, found);
  };

  /** Stops Millrace and deletes the database. */
  readonly stop = async (): Promise<void> => {
    this.#stopping ??= this.#stop();
    await this.#stopping;
  };

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
  }

  async #stop(): Promise<void> {
    await this.#upkeep.close();
    await this.millrace.stop();
    await this.#database.close();
    await this.#place.drop();
  }

  #refuseStopped(): void {
    if (this.#stopping !== null) throw new MillraceError("STOPPED");
  }

  async #readAll(): Promise<EnqueuedJob[]> {
    this.#refuseStopped();
    return readEnqueued(this.#database, this.millrace.store);
  }

  get #keepers() {
    const { breakers, store } = this.millrace;
    return { database: this.#database, upkeep: this.#upkeep, notices: store.notices, breakers };
  }
}

/** Retries come without jitter, and nothing is logged, unless the options say otherwise. */
export const createTestMillrace = (options: TestMillraceOptions = {}): Promise<TestMillrace> =>
  TestMillrace.create(options);
