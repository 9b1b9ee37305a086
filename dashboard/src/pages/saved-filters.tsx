// Filters that people keep, in this browser: a name and what the address said.

import { Link } from "@tanstack/react-router";
import { type FormEvent, useState } from "react";
import { describe, type JobSearch } from "./job-search.ts";

interface SavedFilter {
  readonly name: string;
  readonly search: JobSearch;
}

const place = "millrace.job-filters";
const given: readonly SavedFilter[] = [
  { name: "Running", search: { state: "running" } },
  { name: "Waiting", search: { state: "ready,scheduled" } },
  { name: "Dead", search: { state: "dead" } },
];

const isFilter = (kept: unknown): kept is SavedFilter => {
  const { name, search } = (kept ?? {}) as Partial<SavedFilter>;
  return typeof name === "string" && typeof search === "object" && search !== null;
};

function load(): readonly SavedFilter[] {
  try {
    const kept: unknown = JSON.parse(localStorage.getItem(place) ?? "[]");
    return Array.isArray(kept) ? kept.filter(isFilter) : [];
  } catch {
    return [];
  }
}

export function SavedFilters({ search }: { search: JobSearch }) {
  const [own, setOwn] = useState(load);
  const [isNaming, setNaming] = useState(false);
  const keep = (filters: readonly SavedFilter[]) => {
    setOwn(filters);
    try {
      localStorage.setItem(place, JSON.stringify(filters));
    } catch {
      // Then they last as long as the page.
    }
  };
  const save = (name: string) => {
    const { cursor: _, ...kept } = search;
    keep([...own.filter((one) => one.name !== name), { name, search: kept }]);
    setNaming(false);
  };
  return (
    <div className="row">
      {[...given, ...own].map(({ name, search: kept }) => (
        <span key={name} className="row saved">
          <Link to="/jobs" search={kept} className="button" title={describe(kept)}>
            {name}
          </Link>
          {given.some((one) => one.name === name) ? null : (
            <button
              type="button"
              className="quiet"
              aria-label={`Forget the filter ${name}`}
              onClick={() => keep(own.filter((one) => one.name !== name))}
            >
              ×
            </button>
          )}
        </span>
      ))}
      {isNaming ? (
        <NameForm onSave={save} onCancel={() => setNaming(false)} />
      ) : (
        <button type="button" className="quiet" onClick={() => setNaming(true)}>
          Save this filter
        </button>
      )}
    </div>
  );
}

function NameForm(props: {
  readonly onSave: (name: string) => void;
  readonly onCancel: () => void;
}) {
  const [name, setName] = useState("");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (name.trim() !== "") props.onSave(name.trim());
  };
  return (
    <form className="row" onSubmit={submit}>
      <input
        aria-label="Name of the filter"
        placeholder="Name"
        className="brief"
        maxLength={40}
        // biome-ignore lint/a11y/noAutofocus: it appears because somebody asked for it
        autoFocus
        value={name}
        onChange={(event) => setName(event.target.value)}
        onKeyDown={(event) => event.key === "Escape" && props.onCancel()}
      />
      <button type="submit">Save</button>
    </form>
  );
}
