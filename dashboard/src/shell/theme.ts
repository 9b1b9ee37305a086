// Light, dark, or as the system says. The choice is kept in this browser.

import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";

const place = "millrace.theme";
const root = document.documentElement;
const system = matchMedia("(prefers-color-scheme: dark)");
const listeners = new Set<() => void>();

function read(): Theme {
  const { theme } = root.dataset;
  return theme === "light" || theme === "dark" ? theme : "system";
}

export function setTheme(theme: Theme): void {
  if (theme === "system") delete root.dataset.theme;
  else root.dataset.theme = theme;
  try {
    localStorage.setItem(place, theme);
  } catch {
    // Then the choice lasts as long as the page.
  }
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  system.addEventListener("change", listener);
  return () => {
    listeners.delete(listener);
    system.removeEventListener("change", listener);
  };
}

export const useTheme = (): Theme => useSyncExternalStore(subscribe, read);

/** Differs whenever colours do. */
export const useThemeChanges = (): string =>
  useSyncExternalStore(subscribe, () => `${read()} ${system.matches}`);

const following: Record<Theme, Theme> = { system: "light", light: "dark", dark: "system" };
export const nextTheme = (theme: Theme): Theme => following[theme];
