// The browser's own modal dialog: it traps the focus, closes on Escape and gives the focus back.

import { type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Refusal } from "./form-end.tsx";

export function Dialog(props: {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  const title = useId();
  useEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  return (
    <dialog ref={ref} aria-labelledby={title} onClose={props.onClose}>
      <div>
        <h2 id={title}>{props.title}</h2>
        {props.children}
      </div>
    </dialog>
  );
}

export interface Confirmation {
  readonly title: string;
  readonly text: ReactNode;
  readonly action: string;
  readonly isDangerous?: boolean;
  /** "required": the service wants to know why. */
  readonly reason?: "required" | "optional";
  /** What has to be typed, so that nobody does it by mistake. */
  readonly typed?: string;
  readonly run: (reason: string) => Promise<unknown>;
}

/** Asks once more before something is done, and stays open with the reason when it fails. */
export function ConfirmDialog(props: Confirmation & { readonly onClose: () => void }) {
  const { title, text, action, isDangerous, reason, typed, run, onClose } = props;
  const [why, setWhy] = useState("");
  const [echo, setEcho] = useState("");
  const [problem, setProblem] = useState<unknown>(null);
  const [isBusy, setBusy] = useState(false);
  const isReady =
    (reason !== "required" || why.trim() !== "") && (typed === undefined || echo.trim() === typed);
  const submit = async () => {
    setBusy(true);
    setProblem(null);
    try {
      await run(why.trim());
      onClose();
    } catch (error) {
      setProblem(error);
      setBusy(false);
    }
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (isReady && !isBusy) void submit();
        }}
      >
        <div>{text}</div>
        {reason === undefined ? null : (
          <label>
            Reason{reason === "optional" ? " (optional)" : ", kept in the audit trail"}
            <textarea
              value={why}
              maxLength={2_000}
              required={reason === "required"}
              onChange={(event) => setWhy(event.target.value)}
            />
          </label>
        )}
        {typed === undefined ? null : (
          <label>
            Type {typed} to confirm
            <input value={echo} autoComplete="off" onChange={(e) => setEcho(e.target.value)} />
          </label>
        )}
        <Refusal problem={problem} />
        <div className="actions">
          <button type="button" onClick={onClose}>
            Keep things as they are
          </button>
          <button
            type="submit"
            className={isDangerous ? "danger" : "primary"}
            disabled={!isReady || isBusy}
          >
            {isBusy ? "Working…" : action}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
