// Reprocess and discard, one by one or all that match. What is done to many is confirmed by their number,
// and the service checks that number again: if it has changed meanwhile, nothing is done.

import type { DeadLetter, DiscardedMany, ReprocessedMany } from "../api/answers.ts";
import { type Query, send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { plural } from "../parts/words.ts";

const mostAtOnce = 1_000;

export function LetterActions({ letter }: { letter: DeadLetter }) {
  const { confirm, say, refresh } = useActions();
  const { dlq_id, job_type, error_message } = letter;
  const act = (verb: "reprocess" | "discard") => async (notes: string) => {
    await send("POST", `/api/jobs/admin/dlq/${dlq_id}/${verb}`, { notes });
    say(verb === "reprocess" ? `${job_type} runs again.` : `${job_type} is discarded.`);
    await refresh();
  };
  const text = (
    <p>
      {job_type}: <span className="bad">{error_message}</span>
    </p>
  );
  return (
    <div className="row">
      <button
        type="button"
        onClick={() =>
          confirm({
            ...{ title: "Run this job again?", text, action: "Reprocess", reason: "required" },
            run: act("reprocess"),
          })
        }
      >
        Reprocess…
      </button>
      <button
        type="button"
        className="quiet"
        onClick={() =>
          confirm({
            ...{ title: "Discard this dead letter?", text, action: "Discard", reason: "required" },
            ...{ isDangerous: true, run: act("discard") },
          })
        }
      >
        Discard…
      </button>
    </div>
  );
}

export function RepairButtons({ filter, count }: { filter: Query; count: number }) {
  const { confirm, say, refresh } = useActions();
  const named = Object.entries(filter).filter(([, value]) => value !== undefined);
  const wire = Object.fromEntries(
    named.map(([name, value]) => [name, name === "queue_id" ? Number(value) : value]),
  );
  const text = (
    <p>
      {named.length === 0
        ? "All that wait for review."
        : `All that wait for review with ${named
            .map(([name, value]) => `${name.replaceAll("_", " ")} ${value}`)
            .join(", ")}.`}
    </p>
  );
  const what = plural(count, "dead letter");
  const body = (notes: string) => ({ notes, confirm_count: count, filter: wire });
  if (count > mostAtOnce)
    return <span className="soft">Narrow it down to {mostAtOnce} to act on all.</span>;
  const reprocess = async (notes: string) => {
    const path = "/api/jobs/admin/dlq/reprocess";
    const done = await send<ReprocessedMany>("POST", path, body(notes));
    say(`${plural(done.reprocessed.length, "job")} run again.`);
    await refresh();
  };
  const discard = async (notes: string) => {
    const done = await send<DiscardedMany>("POST", "/api/jobs/admin/dlq/discard", body(notes));
    say(`${plural(done.discarded.length, "dead letter")} discarded.`);
    await refresh();
  };
  const common = { text, reason: "required", typed: String(count) } as const;
  return (
    <div className="row">
      <button
        type="button"
        onClick={() =>
          confirm({
            ...{ ...common, title: `Run ${what} again?`, action: `Reprocess ${what}` },
            run: reprocess,
          })
        }
      >
        Reprocess all {count}…
      </button>
      <button
        type="button"
        className="danger"
        onClick={() =>
          confirm({
            ...{ ...common, title: `Discard ${what}?`, action: `Discard ${what}` },
            ...{ isDangerous: true, run: discard },
          })
        }
      >
        Discard all {count}…
      </button>
    </div>
  );
}
