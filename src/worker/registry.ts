import { MillraceError } from "../domain/errors.ts";
import type { AnyJobDefinition, Handler, JobDefinition } from "./job-definition.ts";

export type DefaultHandler = Handler<unknown, unknown>;

type Runnable = JobDefinition<unknown, unknown, unknown> & { run: Handler<unknown, unknown> };

/** Which handler runs which type. With a default handler every type is ours. */
export class Registry {
  readonly #definitions = new Map<string, Runnable>();
  readonly #default: DefaultHandler | undefined;

  constructor(definitions: readonly AnyJobDefinition[], defaultHandler?: DefaultHandler) {
    this.#default = defaultHandler;
    for (const definition of definitions) this.#add(definition as unknown as JobDefinition);
    if (this.#definitions.size === 0 && defaultHandler === undefined) {
      throw new MillraceError(
        "OPTION_INVALID",
        "A worker needs at least one job definition or a default handler.",
      );
    }
  }

  #add(definition: JobDefinition): void {
    const { type, run } = definition;
    if (run === undefined) {
      throw new MillraceError(
        "UNKNOWN_JOB_TYPE",
        `The definition of "${type}" has no run function.`,
      );
    }
    if (this.#definitions.has(type)) {
      throw new MillraceError("OPTION_INVALID", `Two definitions have the type "${type}".`);
    }
    this.#definitions.set(type, { ...definition, run });
  }

  /** null: every type. */
  get types(): readonly string[] | null {
    return this.#default === undefined ? [...this.#definitions.keys()] : null;
  }

  /** By type, the platform that its breaker stands before. */
  get platforms(): Readonly<Record<string, string>> {
    const platforms: Record<string, string> = {};
    for (const { type, platform } of this.#definitions.values())
      if (platform !== undefined) platforms[type] = platform;
    return platforms;
  }

  get queues(): readonly string[] {
    return [...new Set([...this.#definitions.values()].map((definition) => definition.queue))];
  }

  knows(type: string): boolean {
    return this.#default !== undefined || this.#definitions.has(type);
  }

  /** How many of these, from the first on and at most so many, are in these queues and of types we know. */
  leading(
    jobs: readonly { readonly queueId: number; readonly type: string }[],
    queueIds: readonly number[],
    most: number,
  ): number {
    let count = 0;
    for (const { queueId, type } of jobs) {
      if (count === most || !queueIds.includes(queueId) || !this.knows(type)) break;
      count++;
    }
    return count;
  }

  definition(type: string): Runnable | undefined {
    return this.#definitions.get(type);
  }

  handler(type: string): Handler<unknown, unknown> | undefined {
    return this.#definitions.get(type)?.run ?? this.#default;
  }
}
