import { createContext, useContext, useSyncExternalStore } from "react";
import type { Live, LiveStatus } from "./live.ts";

const LiveContext = createContext<Live | null>(null);
export const LiveProvider = LiveContext.Provider;

export function useLive(): { readonly status: LiveStatus; readonly toggle: () => void } {
  const live = useContext(LiveContext);
  if (live === null) throw new Error("There is no live connection here.");
  return { status: useSyncExternalStore(live.subscribe, live.read), toggle: live.toggle };
}
