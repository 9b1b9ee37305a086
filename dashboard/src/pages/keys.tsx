import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState } from "react";
import type { ApiKey, ApiKeyWithSecret } from "../api/answers.ts";
import * as queries from "../api/queries.ts";
import { send } from "../api/service.ts";
import { useActions } from "../parts/actions.tsx";
import { Dialog } from "../parts/dialog.tsx";
import { FormEnd } from "../parts/form-end.tsx";
import { Ago, Command, Empty, Mark } from "../parts/marks.tsx";
import { Loaded, Panel } from "../parts/page.tsx";
import { type Column, Table } from "../parts/table.tsx";
import { useSession } from "../shell/session.ts";

const roles = ["producer", "robot", "staff", "manager", "admin"] as const;

function KeyMark({ apiKey }: { apiKey: ApiKey }) {
  if (apiKey.revoked_at !== null) return <Mark tone="bad">revoked</Mark>;
  const isOver = apiKey.expires_at !== null && Date.parse(apiKey.expires_at) < Date.now();
  return isOver ? <Mark tone="warn">expired</Mark> : <Mark tone="good">valid</Mark>;
}

export function KeysPanel() {
  const { confirm, say, refresh } = useActions();
  const keys = useQuery(queries.keys());
  const [isMaking, setMaking] = useState(false);
  const [secret, setSecret] = useState<ApiKeyWithSecret | null>(null);
  const rotate = (key: ApiKey) =>
    confirm({
      title: `Give ${key.name} a new secret?`,
      text: <p>The old one works on for a day, so that nobody is locked out.</p>,
      action: "Rotate",
      run: async () => {
        setSecret(await send<ApiKeyWithSecret>("POST", `/api/keys/${key.id}/rotate`));
        await refresh();
      },
    });
  const revoke = (key: ApiKey) =>
    confirm({
      title: `Revoke ${key.name}?`,
      text: <p>Within five seconds nobody accepts it. It cannot be given back.</p>,
      ...{ action: "Revoke", isDangerous: true },
      run: async () => {
        await send("DELETE", `/api/keys/${key.id}`);
        say(`${key.name} is revoked.`);
        await refresh();
      },
    });
  return (
    <Panel
      title="API keys"
      padded={false}
      actions={
        <button type="button" onClick={() => setMaking(true)}>
          New key…
        </button>
      }
    >
      <Loaded query={keys}>
        {(data) => (
          <Table
            label="API keys"
            columns={columnsOf(rotate, revoke)}
            rows={data.keys}
            keyOf={({ id }) => id}
            empty={
              <Empty
                title="No keys are stored yet"
                command="npx millrace keys create --name app --role producer"
              >
                <p>
                  The service's own admin key works without being listed: its environment holds it.
                  Programs and people get keys from here; only a hash of each is stored.
                </p>
              </Empty>
            }
          />
        )}
      </Loaded>
      {isMaking ? (
        <NewKeyDialog
          onClose={() => setMaking(false)}
          onMade={(made) => {
            setMaking(false);
            setSecret(made);
            void refresh();
          }}
        />
      ) : null}
      {secret === null ? null : (
        <Dialog title={`The key of ${secret.name}`} onClose={() => setSecret(null)}>
          <p>It is shown this once. Keep it where secrets are kept.</p>
          <Command text={secret.key} />
          <div className="actions">
            <button type="button" className="primary" onClick={() => setSecret(null)}>
              I have it
            </button>
          </div>
        </Dialog>
      )}
    </Panel>
  );
}

type Act = (key: ApiKey) => void;

const columnsOf = (rotate: Act, revoke: Act): readonly Column<ApiKey>[] => [
  { id: "name", header: "Name", cell: ({ name }) => name },
  { id: "role", header: "Role", cell: ({ role }) => role },
  {
    id: "tenant",
    header: "Tenant",
    wide: true,
    cell: ({ tenant_id }) => tenant_id ?? <span className="soft">all</span>,
  },
  { id: "state", header: "State", cell: (key) => <KeyMark apiKey={key} /> },
  {
    id: "used",
    header: "Last used",
    wide: true,
    cell: ({ last_used_at }) => <Ago at={last_used_at} none="never" />,
  },
  {
    id: "expires",
    header: "Expires",
    wide: true,
    cell: ({ expires_at }) => <Ago at={expires_at} none="never" />,
  },
  {
    id: "actions",
    header: "",
    align: "end",
    cell: (key) =>
      key.revoked_at === null ? (
        <div className="row">
          <button type="button" aria-label={`Rotate ${key.name}`} onClick={() => rotate(key)}>
            Rotate…
          </button>
          <button
            type="button"
            className="quiet"
            aria-label={`Revoke ${key.name}`}
            onClick={() => revoke(key)}
          >
            Revoke…
          </button>
        </div>
      ) : null,
  },
];

function NewKeyDialog(props: {
  readonly onClose: () => void;
  readonly onMade: (key: ApiKeyWithSecret) => void;
}) {
  const { tenant } = useSession();
  const [problem, setProblem] = useState<unknown>(null);
  const make = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const owner = String(form.get("tenant") ?? "").trim();
    const body = {
      ...{ name: String(form.get("name")).trim(), role: String(form.get("role")) },
      ...(owner === "" ? {} : { tenant_id: owner }),
    };
    try {
      props.onMade(await send<ApiKeyWithSecret>("POST", "/api/keys", body));
    } catch (error) {
      setProblem(error);
    }
  };
  return (
    <Dialog title="New key" onClose={props.onClose}>
      <form className="stack" onSubmit={(event) => void make(event)}>
        <label>
          Name: who or what will use it
          <input name="name" required maxLength={200} autoComplete="off" />
        </label>
        <label>
          Role
          <select name="role" defaultValue="producer">
            {roles.map((role) => (
              <option key={role}>{role}</option>
            ))}
          </select>
        </label>
        {tenant === null ? (
          <label>
            Tenant, or nothing for all of them
            <input name="tenant" maxLength={200} autoComplete="off" />
          </label>
        ) : null}
        <FormEnd problem={problem} action="Make the key" onClose={props.onClose} />
      </form>
    </Dialog>
  );
}
