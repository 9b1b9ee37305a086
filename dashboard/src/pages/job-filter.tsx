import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useRef, useState } from "react";
import type { JobSummary, Worker } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { Text } from "../parts/text-field.tsx";
import { mayAct, useSession } from "../shell/session.ts";
import { findBy, type JobSearch, states } from "./job-search.ts";

interface FilterProps {
  readonly search: JobSearch;
  readonly shown: readonly JobSummary[];
  readonly onChange: (search: JobSearch) => void;
}

export function JobFilter({ search, shown, onChange }: FilterProps) {
  const { tenant } = useSession();
  const { data: queues = [] } = useQuery(queries.queues());
  const names = [...new Set([...queues.map(({ name }) => name), search.queue ?? ""])];
  const types = useTypes(shown);
  const set = (name: keyof JobSearch, value: string) => {
    const { cursor: _, [name]: __, ...others } = search;
    onChange(value === "" ? others : { ...others, [name]: value });
  };
  return (
    <div className="stack filter">
      <div className="fields">
        <Find search={search} onChange={onChange} />
        <label>
          Queue
          <select value={search.queue ?? ""} onChange={(e) => set("queue", e.target.value)}>
            <option value="">any</option>
            {names.filter(Boolean).map((name) => (
              <option key={name}>{name}</option>
            ))}
          </select>
        </label>
        <Text label="Type" value={search.type} list="job-types" onSet={(v) => set("type", v)} />
        {tenant === null ? (
          <Text label="Tenant" value={search.tenant} onSet={(v) => set("tenant", v)} />
        ) : null}
        <label>
          Created
          <select value={search.since ?? ""} onChange={(e) => set("since", e.target.value)}>
            <option value="">at any time</option>
            <option value="15m">in the last 15 minutes</option>
            <option value="1h">in the last hour</option>
            <option value="24h">in the last day</option>
            <option value="7d">in the last week</option>
          </select>
        </label>
        <datalist id="job-types">
          {types.map((type) => (
            <option key={type} value={type} />
          ))}
        </datalist>
      </div>
      <States chosen={search.state} onSet={(value) => set("state", value)} />
    </div>
  );
}

/** Nobody promises the shape of what a worker says of itself. */
function typesOf({ info }: Worker): readonly unknown[] {
  const { types } = (info ?? {}) as { readonly types?: unknown };
  return Array.isArray(types) ? types : [];
}

/** Nobody keeps a list of types: these are what workers say they run, and what was on this page. */
function useTypes(shown: readonly JobSummary[]): readonly string[] {
  const session = useSession();
  const mayAsk = mayAct(session, "staff") && session.tenant === null;
  const { data } = useQuery({ ...queries.workers(), enabled: mayAsk });
  const seen = useRef(new Set<string>());
  for (const { type } of shown) seen.current.add(type);
  for (const worker of data?.workers ?? [])
    for (const type of typesOf(worker)) seen.current.add(String(type));
  return [...seen.current].sort();
}

function States({
  chosen = "",
  onSet,
}: {
  chosen?: string | undefined;
  onSet: (v: string) => void;
}) {
  const on = new Set(chosen.split(",").filter(Boolean));
  const flip = (state: string) => {
    const next = new Set(on);
    if (!next.delete(state)) next.add(state);
    onSet(states.filter((one) => next.has(one)).join(","));
  };
  return (
    <fieldset className="states">
      <legend className="sr-only">States</legend>
      {states.map((state) => (
        <button key={state} type="button" aria-pressed={on.has(state)} onClick={() => flip(state)}>
          {state}
        </button>
      ))}
    </fieldset>
  );
}

function Find({ search, onChange }: Omit<FilterProps, "shown">) {
  const [by, setBy] = useState(search.by ?? "id");
  const [text, setText] = useState(search.find ?? "");
  useEffect(() => {
    setBy(search.by ?? "id");
    setText(search.find ?? "");
  }, [search.by, search.find]);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    const { cursor: _, find: __, by: ___, ...others } = search;
    onChange(text.trim() === "" ? others : { ...others, by, find: text.trim() });
  };
  return (
    <form className="find" onSubmit={submit}>
      <label>
        Find by
        <select value={by} onChange={(event) => setBy(event.target.value)}>
          {Object.entries(findBy).map(([name, title]) => (
            <option key={name} value={name}>
              {title}
            </option>
          ))}
        </select>
      </label>
      <label className="grow">
        Search
        <input
          data-search
          type="search"
          placeholder="the whole value, then Enter"
          maxLength={200}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </label>
    </form>
  );
}
