// Triggers as people see them: create, read, change, delete. Every change wakes the runners.

import { MillraceError } from "../../domain/errors.ts";
import {
  firstFire,
  plannedFire,
  type Trigger,
  type TriggerSettings,
} from "../../domain/trigger.ts";
import type { TriggerFilter, TriggerStore } from "../triggers.ts";
import type { Database, Reader } from "./database.ts";
import { isUniqueViolation } from "./failures.ts";
import { statement } from "./statement.ts";
import { settleItem } from "./trigger-items.ts";
import {
  settingColumns,
  settingValues,
  type TriggerRow,
  toTrigger,
  triggerColumns,
  triggerTables,
} from "./trigger-rows.ts";

// $1 id, $2 next_fire_at, then the settings.
const settingParameters = settingColumns.map((_, i) => `$${i + 3}`).join(", ");

const insert = statement(
  "create_trigger",
  `insert into millrace.trigger (id, next_fire_at, ${settingColumns.join(", ")})
  values ($1::uuid, $2::timestamptz, ${settingParameters})`,
);

const update = statement(
  "update_trigger",
  `update millrace.trigger set (next_fire_at, ${settingColumns.join(", ")})
    = row ($2::timestamptz, ${settingParameters}), failures = 0, last_error = null, retry_at = null, updated_at = now()
  where id = $1::uuid`,
);

const lock = statement(
  "lock_trigger",
  `select ${triggerColumns}, greatest(now(), t.handled_until) as from_now from ${triggerTables}
  where t.id = $1::uuid for update of t`,
);

const read = statement(
  "read_triggers",
  `select ${triggerColumns} from ${triggerTables}
  where ($1::uuid is null or t.id = $1::uuid) and ($2::text is null or t.tenant = $2::text)
    and ($3::text is null or t.type = $3::text) and ($4::text is null or t.name = $4::text)
  order by t.tenant, t.name limit $5::int`,
);

const remove = statement(
  "delete_trigger",
  `with slots as (delete from millrace.trigger_slot where trigger_id = $1::uuid)
  delete from millrace.trigger where id = $1::uuid returning id`,
);

const databaseTime = statement("database_time", "select now() as now");
const announce = statement("announce_triggers", "select pg_notify(@channel, 'triggers')");

type Query = Database["query"];

export function triggerStore(
  database: Database,
  withPartitions: <T>(body: () => Promise<T>) => Promise<T>,
): TriggerStore {
  return {
    create: (id, settings) =>
      database
        .transaction((inside) => createTrigger(inside, id, settings))
        .catch((error: unknown) => Promise.reject(nameTaken(error, settings.name))),
    update: (id, change) =>
      database
        .transaction((inside) => changeTrigger(inside, id, change))
        .catch((error: unknown) => Promise.reject(nameTaken(error, "this"))),
    async delete(id) {
      return database.transaction(async (inside) => {
        await inside(announce);
        return (await inside(remove, [id])).length > 0;
      });
    },
    ...createTriggerReads(database),
    settleItem: (settlement) =>
      withPartitions(() =>
        database.transaction((inside) =>
          settleItem((source, values) => inside(source, values), settlement),
        ),
      ),
  };
}

export function createTriggerReads(reader: Reader): Pick<TriggerStore, "find" | "list"> {
  const query: Query = (source, values) => reader.query(source, values);
  return {
    find: async (id) => (await readTriggers(query, { id }, 1))[0] ?? null,
    list: (filter, limit) => readTriggers(query, filter, limit),
  };
}

async function readTriggers(
  query: Query,
  filter: TriggerFilter & { readonly id?: string },
  limit: number,
): Promise<Trigger[]> {
  const values = [filter.id ?? null, filter.tenant ?? null, filter.type ?? null];
  const rows = await query<TriggerRow>(read, [...values, filter.name ?? null, limit]);
  return rows.map(toTrigger);
}

async function createTrigger(
  query: Query,
  id: string,
  settings: TriggerSettings,
): Promise<Trigger> {
  const [time] = await query<{ now: Date }>(databaseTime);
  if (time === undefined) throw new MillraceError("DATABASE_UNAVAILABLE");
  await query(insert, [id, firstFire(settings, time.now), ...settingValues(settings)]);
  await query(announce);
  return one(await readTriggers(query, { id }, 1), id);
}

async function changeTrigger(
  query: Query,
  id: string,
  change: (trigger: Trigger) => TriggerSettings,
): Promise<Trigger> {
  const [row] = await query<TriggerRow & { from_now: Date }>(lock, [id]);
  if (row === undefined) throw notFound(id);
  const before = toTrigger(row);
  const settings = change(before);
  const next = plannedFire(settings, before, row.from_now);
  await query(update, [id, next, ...settingValues(settings)]);
  await query(announce);
  return one(await readTriggers(query, { id }, 1), id);
}

function one(triggers: readonly Trigger[], id: string): Trigger {
  const [trigger] = triggers;
  if (trigger === undefined) throw notFound(id);
  return trigger;
}

const notFound = (id: string) =>
  new MillraceError("TRIGGER_NOT_FOUND", `There is no trigger ${id}.`);

const nameTaken = (error: unknown, name: string): unknown =>
  isUniqueViolation(error)
    ? new MillraceError("TRIGGER_NAME_TAKEN", `The tenant has another trigger "${name}".`, {
        cause: error,
      })
    : error;
