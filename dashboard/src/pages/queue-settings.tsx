// A queue's settings as a form. Only what was changed is sent.

import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Queue } from "../api/answers.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormEnd, Refusal } from "../parts/form-end.tsx";
import { useSession } from "../shell/session.ts";
import { changesIn, QueueFields } from "./queue-fields.tsx";

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
        <QueueFields queue={queue} />
        <Refusal problem={problem} />
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
