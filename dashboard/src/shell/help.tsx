import { Dialog } from "../parts/dialog.tsx";
import type { PageEntry } from "./pages.ts";

const others = [
  ["/", "search"],
  ["j", "next row"],
  ["k", "row before"],
  ["s", "light, dark or the system's colours"],
  ["p", "pause or resume live updates"],
  ["?", "this sheet"],
  ["Esc", "close a dialog"],
] as const;

export function HelpSheet(props: {
  readonly pages: readonly PageEntry[];
  readonly onClose: () => void;
}) {
  return (
    <Dialog title="Keyboard" onClose={props.onClose}>
      <dl className="facts">
        {props.pages.map(({ key, title }) => (
          <div key={key} className="fact">
            <dt>
              <kbd>g</kbd> <kbd>{key}</kbd>
            </dt>
            <dd>{title}</dd>
          </div>
        ))}
        {others.map(([key, what]) => (
          <div key={key} className="fact">
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <div className="actions">
        <button type="button" onClick={props.onClose}>
          Close
        </button>
      </div>
    </Dialog>
  );
}
