// A queue's settings as a form. Only what was changed is sent.

import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Queue } from "../api/answers.ts";
import { messageOf, send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormEnd } from "../parts/form-end.tsx";
import { useSession } from "../shell/session.ts";

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

/** What differs from the queue as it is; an empty field is null where that has a meaning. */
function changesIn(form: FormData, queue: Queue): Record<string, unknown> {
  const changes: Record<string, unknown> = {};
  for (const { name, empty } of numbers) {
    const text = String(form.get(name) ?? "").trim();
    const value = text === "" ? null : Number(text);
    const isMeant = value !== null || (empty !== undefined && name !== "max_retries");
    if (isMeant && value !== queue[name]) changes[name] = value;
  }
  const description = String(form.get("description") ?? "").trim() || null;
  if (description !== queue.description) changes.description = description;
  for (const name of ["enforce_unique_reference", "is_active"] as const) {
    const value = form.get(name) === "on";
    if (value !== queue[name]) changes[name] = value;
  }
  return changes;
}

export function QueueSettings({ queue, isFixed }: { queue: Queue; isFixed: boolean }) {
  const { say, refresh } = useActions();
  const [problem, setProblem] = useState<unknown>(null);
  const save = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const changes = changesIn(new FormData(event.currentTarget), queue);
    setProblem(null);
    if (Object.keys(changes).length === 0) return say("Nothing was changed.");
    try {
      await send("PUT", `/api/queues/${queue.id}`, changes);
      say(`${queue.name} is changed.`);
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <form onSubmit={(event) => void save(event)}>
      <fieldset className="stack" disabled={isFixed}>
        <label>
          Description
          <input name="description" defaultValue={queue.description ?? ""} maxLength={2_000} />
        </label>
        <div className="fields">
          {numbers.map(({ name, label, least, empty }) => (
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
          ))}
        </div>
        <label className="check">
          <input
            type="checkbox"
            name="enforce_unique_reference"
            defaultChecked={queue.enforce_unique_reference}
          />
          References are unique
        </label>
        <label className="check">
          <input type="checkbox" name="is_active" defaultChecked={queue.is_active} />
          Active: it accepts and serves
        </label>
        {problem === null ? null : (
          <div className="note-box" data-tone="bad" role="alert">
            {messageOf(problem)}
          </div>
        )}
        {isFixed ? null : (
          <div className="row">
            <button type="submit" className="primary">
              Save
            </button>
          </div>
        )}
      </fieldset>
    </form>
  );
}

/** Any printable name will do; these need no quotes anywhere. */
const plain = /^[\w.:@-]*$/;

export function NewQueueDialog({ onClose }: { onClose: () => void }) {
  const { tenant } = useSession();
  const { say, refresh } = useActions();
  const navigate = useNavigate();
  const [problem, setProblem] = useState<unknown>(null);
  const [isQuoted, setQuoted] = useState(false);
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const owner = String(form.get("tenant") ?? "").trim();
    const retries = String(form.get("retries") ?? "").trim();
    const body = {
      name: String(form.get("name")).trim(),
      max_retries: retries === "" ? null : Number(retries),
      ...(owner === "" ? {} : { tenant_id: owner }),
    };
    try {
      const made = await send<Queue>("POST", "/api/queues", body);
      say(`${made.name} is made.`);
      onClose();
      await navigate({ to: "/queues/$id", params: { id: String(made.id) } });
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog title="New queue" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void make(event)}>
        <label>
          Name
          <input
            name="name"
            required
            maxLength={200}
            autoComplete="off"
            onChange={(event) => setQuoted(!plain.test(event.target.value))}
          />
          {isQuoted ? <span>A shell will want this name in quotes.</span> : null}
        </label>
        <label>
          Retries after a failure
          <input
            name="retries"
            type="number"
            min={0}
            max={999}
            placeholder="as the job's type says"
          />
        </label>
        {tenant === null ? (
          <label>
            Tenant, or nothing for a queue that all share
            <input name="tenant" maxLength={200} autoComplete="off" />
          </label>
        ) : null}
        <FormEnd problem={problem} action="Make the queue" onClose={onClose} />
      </form>
    </Dialog>
  );
}
