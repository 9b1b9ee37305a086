// What pages do: one confirmation at a time, a word when it is done, and fresh figures after it.

import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useMemo, useState } from "react";
import { type Confirmation, ConfirmDialog } from "./dialog.tsx";

interface Actions {
  confirm(confirmation: Confirmation): void;
  /** Told to everybody who listens, readers included. */
  say(text: string): void;
  refresh(): Promise<void>;
}

const ActionsContext = createContext<Actions | null>(null);
const shownMs = 5_000;

export function ActionsProvider({ children }: { children: ReactNode }) {
  const queries = useQueryClient();
  const [asked, setAsked] = useState<Confirmation | null>(null);
  const [said, setSaid] = useState<readonly { id: number; text: string }[]>([]);
  const say = useCallback((text: string) => {
    const id = performance.now();
    setSaid((before) => [...before, { id, text }]);
    setTimeout(() => setSaid((before) => before.filter((one) => one.id !== id)), shownMs);
  }, []);
  const refresh = useCallback(async () => {
    await queries.invalidateQueries({ predicate: ({ queryKey }) => queryKey[0] !== "session" });
  }, [queries]);
  const actions = useMemo(() => ({ confirm: setAsked, say, refresh }), [say, refresh]);
  return (
    <ActionsContext.Provider value={actions}>
      {children}
      {asked === null ? null : <ConfirmDialog {...asked} onClose={() => setAsked(null)} />}
      <div className="toasts" role="status">
        {said.map(({ id, text }) => (
          <div key={id} className="toast">
            {text}
          </div>
        ))}
      </div>
    </ActionsContext.Provider>
  );
}

export function useActions(): Actions {
  const actions = useContext(ActionsContext);
  if (actions === null) throw new Error("There are no actions here.");
  return actions;
}
