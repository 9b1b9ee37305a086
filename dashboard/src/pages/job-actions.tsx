import { useNavigate } from "@tanstack/react-router";
import type { Cancelled, FullJob, Reprocessed } from "../api/answers.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { useMay } from "../shell/session.ts";
import { actionable } from "./bulk.ts";

/** What this state and this role allow. */
export function JobActions({ job }: { job: FullJob }) {
  const { confirm, say, refresh } = useActions();
  const navigate = useNavigate();
  const mayCancel = useMay("manager", "producer");
  const isManager = useMay("manager");
  const { id, type, state } = job;

  const cancel = () =>
    confirm({
      title: "Cancel this job?",
      text: (
        <p>
          {state === "running"
            ? `${type} runs: its handler is asked to stop, and may finish first.`
            : `${type} will not run. It can be reprocessed later.`}
        </p>
      ),
      ...{ action: "Cancel the job", isDangerous: true, reason: "optional" },
      run: async (reason) => {
        const body = reason === "" ? {} : { reason };
        const { result } = await send<Cancelled>("POST", `/api/jobs/${id}/cancel`, body);
        say(result === "cancelled" ? "The job is cancelled." : "The job was asked to stop.");
        await refresh();
      },
    });

  const reprocess = () =>
    confirm({
      title: "Run this job again?",
      text: <p>A new job with the same payload is enqueued and linked to this one, which stays.</p>,
      ...{ action: "Reprocess", reason: "required" },
      run: async (notes) => {
        const made = await send<Reprocessed>("POST", `/api/jobs/${id}/retry`, { notes });
        say("The job runs again as a new one.");
        await navigate({ to: "/jobs/$id", params: { id: made.new_job_id } });
      },
    });

  const discard = () =>
    confirm({
      title: "Discard this dead letter?",
      text: <p>It is closed for good. It stays readable until its retention is over.</p>,
      ...{ action: "Discard", isDangerous: true, reason: "required" },
      run: async (notes) => {
        await send("POST", `/api/jobs/admin/dlq/${id}/discard`, { notes });
        say("The dead letter is discarded.");
        await refresh();
      },
    });

  return (
    <>
      {mayCancel && actionable.cancel.has(state) && !job.cancel_requested ? (
        <button type="button" className="danger" onClick={cancel}>
          Cancel…
        </button>
      ) : null}
      {isManager && actionable.reprocess.has(state) && job.reprocessed_as === null ? (
        <button type="button" className="primary" onClick={reprocess}>
          Reprocess…
        </button>
      ) : null}
      {isManager && state === "dead" && job.reprocessed_as === null ? (
        <button type="button" className="danger" onClick={discard}>
          Discard…
        </button>
      ) : null}
    </>
  );
}
