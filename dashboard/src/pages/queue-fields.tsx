// The fields of a queue's settings, and what was changed in them.

import type { Queue } from "../api/answers.ts";

interface NumberField {
  readonly name: keyof Queue & string;
  readonly label: string;
  readonly least: number;
  /** What an empty field means, where it may be empty. */
  readonly empty?: string;
}

const numbers: readonly NumberField[] = [
  { name: "max_retries", label: "Retries", least: 0, empty: "by job type" },
  { name: "capacity", label: "Capacity", least: 0, empty: "no limit" },
  { name: "tenant_capacity", label: "Capacity of each tenant", least: 0, empty: "no limit" },
  { name: "warn_depth", label: "Warn at depth", least: 0, empty: "never" },
  { name: "retention_days", label: "Keep ended jobs, days", least: 1 },
  {
    ...{ name: "dead_retention_days", label: "Keep dead letters, days", least: 1 },
    empty: "until dealt with",
  },
  {
    ...{ name: "timeline_retention_days", label: "Keep timelines, days", least: 1 },
    empty: "as long as jobs",
  },
  { name: "key_ttl_seconds", label: "Keep keys, seconds", least: 1 },
];

const flowNumbers: readonly NumberField[] = [
  { name: "concurrency", label: "Run at once", least: 1, empty: "no limit" },
  { name: "key_concurrency", label: "Run at once, of each key", least: 1, empty: "no limit" },
  {
    ...{ name: "ageing_step_ms", label: "Ageing, ms for a step of priority", least: 1 },
    empty: "priorities are strict",
  },
];

const rates = [
  { name: "throttle", label: "Start" },
  { name: "key_throttle", label: "Start, of each key" },
  { name: "rate_limit", label: "May be enqueued" },
  { name: "tenant_rate_limit", label: "May be enqueued, by each tenant" },
] as const;

const flags = [
  { name: "enforce_unique_reference", label: "References are unique" },
  { name: "is_active", label: "Active: it accepts and serves" },
] as const;

const flowFlags = [
  { name: "fair", label: "Tenants take turns" },
  { name: "dead_letter_blocks_key", label: "A dead letter holds up its ordering key" },
] as const;

const textOf = (form: FormData, name: string) => String(form.get(name) ?? "").trim();
const numberOf = (form: FormData, name: string) => {
  const text = textOf(form, name);
  return text === "" ? null : Number(text);
};

function rateOf(form: FormData, name: string) {
  const limit = numberOf(form, `${name}.limit`);
  const seconds = numberOf(form, `${name}.seconds`);
  return limit === null ? null : { limit, window_ms: Math.round((seconds ?? 60) * 1_000) };
}

/** What differs from the queue as it is; an empty field is null where that has a meaning. */
export function changesIn(form: FormData, queue: Queue): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  const note = (name: keyof Queue, value: unknown) => {
    if (JSON.stringify(value) !== JSON.stringify(queue[name])) changes[name] = value;
  };
  for (const { name, empty } of [...numbers, ...flowNumbers]) {
    const value = numberOf(form, name);
    if (value !== null || empty !== undefined) note(name, value);
  }
  for (const { name } of rates) note(name, rateOf(form, name));
  for (const { name } of [...flags, ...flowFlags]) note(name, form.get(name) === "on");
  note("description", textOf(form, "description") || null);
  return changes;
}

function Numbers({ fields, queue }: { fields: readonly NumberField[]; queue: Queue }) {
  return fields.map(({ name, label, least, empty }) => (
    <label key={name}>
      {label}
      <input
        name={name}
        type="number"
        min={least}
        required={empty === undefined}
        placeholder={empty}
        defaultValue={(queue[name] as number | null) ?? ""}
      />
    </label>
  ));
}

function Flags({ fields, queue }: { fields: typeof flags | typeof flowFlags; queue: Queue }) {
  return fields.map(({ name, label }) => (
    <label key={name} className="check">
      <input type="checkbox" name={name} defaultChecked={queue[name]} />
      {label}
    </label>
  ));
}

/** A number, and the window that it is for. */
function Rates({ queue }: { queue: Queue }) {
  return rates.map(({ name, label }) => (
    <div key={name} className="fields">
      <label>
        {label}, at most
        <input
          name={`${name}.limit`}
          type="number"
          min={1}
          placeholder="no limit"
          defaultValue={queue[name]?.limit ?? ""}
        />
      </label>
      <label>
        {label}: in so many seconds
        <input
          name={`${name}.seconds`}
          type="number"
          min={0.01}
          max={86_400}
          step="any"
          placeholder="60"
          defaultValue={queue[name] === null ? "" : queue[name].window_ms / 1_000}
        />
      </label>
    </div>
  ));
}

export function QueueFields({ queue }: { queue: Queue }) {
  return (
    <>
      <label>
        Description
        <input name="description" defaultValue={queue.description ?? ""} maxLength={2_000} />
      </label>
      <div className="fields">
        <Numbers fields={numbers} queue={queue} />
      </div>
      <Flags fields={flags} queue={queue} />
      <h3>Flow control</h3>
      <div className="fields">
        <Numbers fields={flowNumbers} queue={queue} />
      </div>
      <Rates queue={queue} />
      <Flags fields={flowFlags} queue={queue} />
    </>
  );
}
