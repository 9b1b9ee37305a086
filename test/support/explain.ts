// The plans PostgreSQL really ran: auto_explain tells each connection its own, as notices.

import type pg from "pg";
import { systemClock } from "../../src/runtime/clock.ts";
import { Events } from "../../src/runtime/events.ts";
import type { Connection } from "../../src/store/postgres/connection.ts";
import { Database } from "../../src/store/postgres/database.ts";

interface PlanNode {
  readonly "Node Type": string;
  readonly "Relation Name"?: string;
  readonly "Subplan Name"?: string;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Rows Removed by Filter"?: number;
  readonly "Rows Removed by Index Recheck"?: number;
  readonly "Shared Hit Blocks"?: number;
  readonly "Shared Read Blocks"?: number;
  readonly Plans?: readonly PlanNode[];
}

/** What one statement did to one table. */
export interface Visit {
  readonly node: string;
  /** Rows that were looked at, whether or not they were wanted. */
  readonly rows: number;
}

export class ExplainedPlan {
  readonly text: string;
  readonly #root: PlanNode;

  constructor(json: { "Query Text": string; Plan: PlanNode }) {
    this.text = json["Query Text"];
    this.#root = json.Plan;
  }

  /** Joins that take in the whole table, instead of looking up what they need. */
  wholesaleJoins(table: string): string[] {
    const joins = [...walk(this.#root)].filter((node) => /^(Hash|Merge)/.test(node["Node Type"]));
    return joins
      .filter((join) => [...walk(join)].some((node) => node["Relation Name"] === table))
      .map((join) => join["Node Type"]);
  }

  /** The root does not count writing CTEs that nobody reads from, so they are added. */
  get buffers(): number {
    const ctes = (this.#root.Plans ?? []).filter((node) => node["Subplan Name"] !== undefined);
    return [this.#root, ...ctes].reduce((sum, node) => sum + touched(node), 0);
  }

  visits(table: string): Visit[] {
    const reads = [...walk(this.#root)].filter(
      (node) => node["Relation Name"] === table && node["Node Type"] !== "ModifyTable",
    );
    return reads.map((node) => ({
      node: node["Node Type"],
      rows:
        ((node["Actual Rows"] ?? 0) +
          (node["Rows Removed by Filter"] ?? 0) +
          (node["Rows Removed by Index Recheck"] ?? 0)) *
        (node["Actual Loops"] ?? 0),
    }));
  }

  toString(): string {
    return JSON.stringify(this.#root, null, 1);
  }
}

const touched = (node: PlanNode): number =>
  (node["Shared Hit Blocks"] ?? 0) + (node["Shared Read Blocks"] ?? 0);

function* walk(node: PlanNode): Generator<PlanNode> {
  yield node;
  for (const child of node.Plans ?? []) yield* walk(child);
}

const settings = {
  log_level: "notice",
  log_min_duration: "0",
  log_analyze: "on",
  log_timing: "off",
  log_buffers: "on",
  log_format: "json",
};

export class Explainer {
  readonly connection: Connection;
  readonly #database: Database;
  readonly #nested: boolean;
  #plans: ExplainedPlan[] = [];

  /** `nested`: also what runs inside functions. */
  constructor(url: string, planCacheMode: string, options: { readonly nested?: boolean } = {}) {
    this.#nested = options.nested === true;
    this.#database = new Database({
      url,
      schema: "millrace",
      poolSize: 1,
      queryTimeoutMs: 60_000,
      events: new Events(),
      clock: systemClock,
      random: Math.random,
    });
    this.connection = this.#database.reserve("explained", {
      settings: { plan_cache_mode: planCacheMode },
      onConnect: (client) => this.#listen(client),
    });
  }

  async #listen(client: pg.Client): Promise<void> {
    await client.query("load 'auto_explain'");
    for (const [name, value] of Object.entries(settings))
      await client.query(`set auto_explain.${name} = '${value}'`);
    if (this.#nested) await client.query("set auto_explain.log_nested_statements = on");
    client.on("notice", ({ message = "" }) => {
      const at = message.indexOf("{");
      if (at > 0) this.#plans.push(new ExplainedPlan(JSON.parse(message.slice(at))));
    });
  }

  /** The plans of everything that ran meanwhile. */
  async explain(act: (connection: Connection) => Promise<unknown>): Promise<ExplainedPlan[]> {
    this.#plans = [];
    await act(this.connection);
    return this.#plans;
  }

  async close(): Promise<void> {
    await this.connection.close();
    await this.#database.close();
  }
}
