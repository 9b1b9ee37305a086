// Keys that lead somewhere. They are silent while somebody types or a dialog is open.

import { useNavigate } from "@tanstack/react-router";
import { useEffect } from "react";
import type { PageEntry } from "./pages.ts";

const patienceMs = 1_500;

function isTyping(target: EventTarget | null): boolean {
  return (
    target instanceof HTMLElement &&
    (target.isContentEditable || /^(?:INPUT|TEXTAREA|SELECT)$/.test(target.tagName))
  );
}

/** Moves the focus among the links that open a row. */
function moveRow(step: 1 | -1): void {
  const links = [...document.querySelectorAll<HTMLElement>("tbody [data-row]")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = at === -1 ? (step === 1 ? 0 : links.length - 1) : at + step;
  links[next]?.focus();
}

export function useShortcuts(
  pages: readonly PageEntry[],
  act: { readonly help: () => void; readonly theme: () => void; readonly pause: () => void },
): void {
  const navigate = useNavigate();
  useEffect(() => {
    let wentAt = Number.NEGATIVE_INFINITY;
    const direct: Readonly<Record<string, () => void>> = {
      "?": act.help,
      s: act.theme,
      p: act.pause,
      j: () => moveRow(1),
      k: () => moveRow(-1),
      "/": () => document.querySelector<HTMLElement>("[data-search]")?.focus(),
    };
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
      if (isTyping(event.target) || document.querySelector("dialog[open]") !== null) return;
      const isSecond = performance.now() - wentAt < patienceMs;
      wentAt = Number.NEGATIVE_INFINITY;
      const page = isSecond ? pages.find(({ key }) => key === event.key) : undefined;
      if (page !== undefined) void navigate({ to: page.path });
      else if (event.key === "g") wentAt = performance.now();
      else direct[event.key]?.();
      if (page !== undefined || event.key === "g" || event.key in direct) event.preventDefault();
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [pages, act, navigate]);
}
