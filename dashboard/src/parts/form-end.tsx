import { messageOf } from "../api/service.ts";

/** Said where the form is, and to whoever listens to the page. */
export function Refusal({ problem }: { readonly problem: unknown }) {
  if (problem === null) return null;
  return (
    <div className="note-box" data-tone="bad" role="alert">
      {messageOf(problem)}
    </div>
  );
}

/** How a form in a dialog ends: what was wrong with it, a way out, and the deed. */
export function FormEnd(props: {
  readonly problem: unknown;
  readonly action: string;
  readonly onClose: () => void;
}) {
  return (
    <>
      <Refusal problem={props.problem} />
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Cancel
        </button>
        <button type="submit" className="primary">
          {props.action}
        </button>
      </div>
    </>
  );
}
