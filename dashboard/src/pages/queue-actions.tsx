import { useNavigate } from "@tanstack/react-router";
import type { Queue } from "../api/answers.ts";
import { detailOf, messageOf, send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { plural } from "../parts/words.ts";
import { useMay, useSession } from "../shell/session.ts";

/** A shared queue is not a tenant's to change. */
export function useMayChange(queue: Queue): boolean {
  const { tenant } = useSession();
  const isManager = useMay("manager");
  return isManager && (tenant === null || queue.tenant_id === tenant);
}

export function PauseButton({ queue }: { queue: Queue }) {
  const mayChange = useMayChange(queue);
  const { confirm, say, refresh } = useActions();
  if (!mayChange) return null;
  const { paused, name } = queue;
  const verb = paused ? "Resume" : "Pause";
  const ask = () =>
    confirm({
      title: `${verb} ${name}?`,
      text: <p>{paused ? "What waits in it starts again." : pauseWords}</p>,
      ...{ action: verb, reason: "optional" },
      run: async (notes) => {
        const path = `/api/queues/${queue.id}/${verb.toLowerCase()}`;
        await send("POST", path, notes === "" ? {} : { notes });
        say(`${name} is ${paused ? "served again" : "paused; it goes on accepting"}.`);
        await refresh();
      },
    });
  return (
    <button type="button" aria-label={`${verb} ${name}`} onClick={ask}>
      {verb}…
    </button>
  );
}

const pauseWords =
  "What runs goes on, nothing new starts. Jobs are accepted, and wait. The audit trail keeps the reason.";

export function PurgeButton({ queue }: { queue: Queue }) {
  const { confirm, say, refresh } = useActions();
  const ask = () =>
    confirm({
      title: `Delete everything that waits in ${queue.name}?`,
      text: <p>What runs goes on; what waits or is delayed is deleted. It cannot be undone.</p>,
      ...{ action: "Purge", isDangerous: true, reason: "required", typed: queue.name },
      run: async (notes) => {
        const path = `/api/queues/${queue.id}/purge`;
        const { purged } = await send<{ purged: number }>("POST", path, { notes });
        say(`${plural(purged, "job")} deleted.`);
        await refresh();
      },
    });
  return (
    <button type="button" className="danger" onClick={ask}>
      Purge…
    </button>
  );
}

export function DeleteButton({ queue }: { queue: Queue }) {
  const { confirm, say, refresh } = useActions();
  const navigate = useNavigate();
  const remove = (count: number) =>
    send("DELETE", `/api/queues/${queue.id}`, {}, { confirm_count: count });
  const askWith = (count: number) =>
    confirm({
      title: `Delete ${queue.name}?`,
      text: (
        <p>
          With it go {plural(count, "item")}, those that have ended included. It cannot be undone.
        </p>
      ),
      ...{ action: "Delete the queue", isDangerous: true, typed: queue.name },
      run: async () => {
        await remove(count);
        say(`${queue.name} is deleted.`);
        await navigate({ to: "/queues" });
        await refresh();
      },
    });
  // A count that cannot be right deletes nothing, and the refusal tells the right one.
  const ask = async () => {
    try {
      await remove(9_007_199_254_740_991);
    } catch (error) {
      const count = detailOf(error, "count");
      if (typeof count === "number") askWith(count);
      else say(messageOf(error));
    }
  };
  return (
    <button type="button" className="danger" onClick={() => void ask()}>
      Delete…
    </button>
  );
}
