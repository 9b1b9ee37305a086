// Small things that say one thing each.

import { type ReactNode, useState } from "react";
import { useNow } from "./clock.ts";
import { distance, moment } from "./words.ts";

export type Tone = "good" | "warn" | "bad" | "accent" | "calm";

const stateTones: Readonly<Record<string, Tone>> = {
  running: "accent",
  completed: "good",
  dead: "bad",
  expired: "warn",
  cancelled: "warn",
  retried: "warn",
  failed: "bad",
  lapsed: "bad",
  CLOSED: "good",
  HALF_OPEN: "warn",
  OPEN: "bad",
  live: "good",
};

export const toneOf = (state: string): Tone => stateTones[state] ?? "calm";

export function Mark({ tone = "calm", children }: { tone?: Tone; children: ReactNode }) {
  return (
    <span className="mark" data-tone={tone}>
      {children}
    </span>
  );
}

export const StateMark = ({ state }: { state: string }) => (
  <Mark tone={toneOf(state)}>{state.toLowerCase().replaceAll("_", " ")}</Mark>
);

/** How long ago or until; the full time on hover and for readers. */
export function Ago({ at, none = "–" }: { at: string | null; none?: string }) {
  const now = useNow();
  if (at === null) return <span className="soft">{none}</span>;
  return (
    <time dateTime={at} title={moment(at)} className="nowrap">
      {distance(Date.parse(at), now)}
    </time>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = async () => {
    await navigator.clipboard.writeText(text).catch(() => {});
    setCopied(true);
    setTimeout(() => setCopied(false), 1_500);
  };
  return (
    <button type="button" className="quiet" onClick={copy} aria-label={`${label}: ${text}`}>
      {isCopied ? "Copied" : label}
    </button>
  );
}

export const Command = ({ text }: { text: string }) => (
  <span className="command">
    <code>{text}</code>
    <Copy text={text} />
  </span>
);

/** What stands where nothing is: why, and what to do about it. */
export function Empty(props: { title: string; command?: string; children?: ReactNode }) {
  return (
    <div className="empty">
      <h3>{props.title}</h3>
      {props.children}
      {props.command === undefined ? null : <Command text={props.command} />}
    </div>
  );
}

export const Json = ({ value, label }: { value: unknown; label: string }) => (
  <section aria-label={label}>
    {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
    <pre tabIndex={0}>{typeof value === "string" ? value : JSON.stringify(value, null, 2)}</pre>
  </section>
);
