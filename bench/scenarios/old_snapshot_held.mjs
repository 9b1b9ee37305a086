// Somebody else's transaction keeps a snapshot for as long as the jobs flow: nothing they leave behind can be
// vacuumed.
import pg from "pg";
import { steady, withStand } from "../measure.mjs";
import { configOf } from "./entries.mjs";
import { runPair, system } from "./pair.mjs";

export const names = ["old_snapshot_held"];

const scenario = "old_snapshot_held";

async function holdSnapshot(stand) {
  const client = new pg.Client({ connectionString: stand.database.url });
  client.on("error", () => {});
  await client.connect();
  await client.query("begin isolation level repeatable read");
  await client.query("select count(*) from pg_class");
  return () => client.end();
}

export async function run(context) {
  const config = await configOf(system, "single");
  const measure = (during) => () =>
    withStand(context.lab, system, config, { workers: 0 }, (stand) =>
      steady(stand, context.scaled(200_000), {
        depth: 10_000,
        warmUp: context.scaled(20_000),
        during,
      }),
    );
  return runPair(context, [
    { scenario, config: "free", measure: measure() },
    { scenario, config: "snapshot held", measure: measure(holdSnapshot) },
  ]);
}
