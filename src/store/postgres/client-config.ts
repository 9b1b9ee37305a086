// How all connections of ours are opened.

import type pg from "pg";
import { types } from "./value-readers.ts";

/**
 * Plans must not collapse on stale statistics: every statement has its index, so the planner is told to
 * use it. jit would otherwise start on the inflated costs.
 */
const planSettings = {
  enable_seqscan: "off",
  enable_bitmapscan: "off",
  plan_cache_mode: "force_generic_plan",
  jit: "off",
  // How values are written out is ours to say, whatever the server's or the role's settings are.
  datestyle: "ISO",
  intervalstyle: "postgres",
  bytea_output: "hex",
};

interface ClientOptions {
  readonly url: string;
  readonly name: string;
  readonly queryTimeoutMs: number;
  readonly settings?: Readonly<Record<string, string>>;
}

export function clientConfig({
  url,
  name,
  queryTimeoutMs,
  settings = {},
}: ClientOptions): pg.ClientConfig {
  const own = Object.entries({ ...planSettings, ...settings }).map(([k, v]) => `-c ${k}=${v}`);
  const { rest, options } = withoutOptions(url);
  return {
    connectionString: rest,
    types,
    application_name: `millrace ${name}`,
    // Of one that is said twice the last counts.
    options: [...options, ...own].join(" "),
    keepAlive: true,
    // Who is impatient with queries does not wait ten seconds for a connection either.
    connectionTimeoutMillis: Math.min(10_000, 10 * queryTimeoutMs),
  };
}

/** For the driver, options in a URL take the place of ours. */
function withoutOptions(url: string): { rest: string; options: string[] } {
  const [place = "", query] = url.split(/\?(.*)/s);
  const said = new URLSearchParams(query);
  const options = said.getAll("options");
  if (options.length === 0) return { rest: url, options };
  said.delete("options");
  return { rest: `${place}?${said}`, options };
}
