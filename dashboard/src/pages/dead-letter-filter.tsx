import { useQuery } from "@tanstack/react-query";
import * as queries from "../api/queries.ts";
import { Text } from "../parts/text-field.tsx";
import { useSession } from "../shell/session.ts";
import type { LetterSearch } from "./letter-search.ts";

const statuses = ["pending_review", "reprocessed", "discarded"] as const;
const classes = ["transient", "retryable", "rate_limited", "non_retryable"] as const;

export function DeadLetterFilter(props: {
  readonly search: LetterSearch;
  readonly onChange: (search: LetterSearch) => void;
}) {
  const { search, onChange } = props;
  const { tenant } = useSession();
  const { data: queues = [] } = useQuery(queries.queues());
  const set = (name: keyof LetterSearch, value: string) => {
    const { cursor: _, [name]: __, ...others } = search;
    onChange(value === "" ? others : { ...others, [name]: value });
  };
  return (
    <div className="fields">
      <label>
        Status
        <select value={search.status ?? ""} onChange={(e) => set("status", e.target.value)}>
          {statuses.map((status) => (
            <option key={status} value={status === "pending_review" ? "" : status}>
              {status.replaceAll("_", " ")}
            </option>
          ))}
        </select>
      </label>
      <label>
        Queue
        <select value={search.queue ?? ""} onChange={(e) => set("queue", e.target.value)}>
          <option value="">any</option>
          {queues.map(({ id, name, tenant_id }) => (
            <option key={id} value={id}>
              {tenant_id === null ? name : `${name} (${tenant_id})`}
            </option>
          ))}
        </select>
      </label>
      <Text label="Type" value={search.type} onSet={(value) => set("type", value)} />
      <label>
        Error class
        <select value={search.class ?? ""} onChange={(e) => set("class", e.target.value)}>
          <option value="">any</option>
          {classes.map((name) => (
            <option key={name} value={name}>
              {name.replaceAll("_", " ")}
            </option>
          ))}
        </select>
      </label>
      {tenant === null ? (
        <Text label="Tenant" value={search.tenant} onSet={(value) => set("tenant", value)} />
      ) : null}
    </div>
  );
}
