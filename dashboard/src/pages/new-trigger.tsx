import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import type { Trigger } from "../api/answers.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormEnd } from "../parts/form-end.tsx";
import { FirePreview } from "./fire-preview.tsx";

const local = Intl.DateTimeFormat().resolvedOptions().timeZone;

export function NewTriggerDialog({ onClose }: { onClose: () => void }) {
  const { say, refresh } = useActions();
  const navigate = useNavigate();
  const [kind, setKind] = useState<"TIME" | "QUEUE">("TIME");
  const [cron, setCron] = useState("0 3 * * *");
  const [zone, setZone] = useState(local);
  const [problem, setProblem] = useState<unknown>(null);
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const text = (name: string) => String(form.get(name) ?? "").trim();
    const rule = kind === "TIME" ? { cron, time_zone: zone } : { queue: text("from") };
    const queue = text("queue");
    const body = {
      ...{ type: kind, name: text("name"), job_type: text("job"), ...rule },
      ...(queue === "" ? {} : { job_queue: queue }),
    };
    try {
      const made = await send<Trigger>("POST", "/api/triggers", body);
      say(`${made.name} is made.`);
      onClose();
      await navigate({ to: "/triggers/$id", params: { id: made.id } });
      await refresh();
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog title="New trigger" onClose={onClose}>
      <form className="stack" onSubmit={(event) => void make(event)}>
        <div className="fields">
          <label>
            Name
            <input name="name" required maxLength={200} autoComplete="off" />
          </label>
          <label>
            Fires
            <select value={kind} onChange={(e) => setKind(e.target.value as "TIME" | "QUEUE")}>
              <option value="TIME">by time</option>
              <option value="QUEUE">from a queue's items</option>
            </select>
          </label>
          <label>
            Type of its jobs
            <input name="job" required maxLength={200} autoComplete="off" />
          </label>
          <label>
            Their queue
            <input name="queue" maxLength={200} placeholder="default" autoComplete="off" />
          </label>
          {kind === "QUEUE" ? (
            <label>
              Takes items of
              <input name="from" required maxLength={200} autoComplete="off" />
            </label>
          ) : (
            <>
              <label>
                Cron
                <input value={cron} required onChange={(event) => setCron(event.target.value)} />
              </label>
              <label>
                Time zone
                <input value={zone} required onChange={(event) => setZone(event.target.value)} />
              </label>
            </>
          )}
        </div>
        {kind === "TIME" ? <FirePreview cron={cron} timeZone={zone} /> : null}
        <FormEnd problem={problem} action="Make the trigger" onClose={onClose} />
      </form>
    </Dialog>
  );
}
