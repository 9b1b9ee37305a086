import type { Millrace } from "../client/millrace.ts";
import { MillraceError } from "../domain/errors.ts";
import { hashOf, keyText, newSecret } from "../http/api-key-text.ts";
import { uuidv7 } from "../runtime/uuid.ts";
import { type ApiKey, type Role, roles } from "../store/api-key.ts";
import { checkName } from "../worker/job-definition.ts";
import { type Command, textOption, UsageError } from "./command.ts";
import { connect, databaseHelp, databaseOptions, withMillrace } from "./connect.ts";
import { plain } from "./text.ts";

const actor = "cli";

export const keysCreate: Command = {
  name: "keys create",
  summary: "make an API key; it is shown once",
  help: `millrace keys create – make an API key; it is shown once

Usage: millrace keys create --role <role> --name <name> [options]

Options:
  --role <role>      ${roles.join(", ")}
  --name <name>      whose it is, for people
  --tenant <tenant>  only this tenant's; without it, of all tenants
${databaseHelp}
  --json             the key with its fields as JSON
  -h, --help         this text

Examples:
  npx millrace keys create --role robot --tenant acme --name "invoice robot"
  npx millrace keys create --role admin --name operations --json
`,
  options: {
    role: { type: "string" },
    name: { type: "string" },
    tenant: { type: "string" },
    ...databaseOptions,
    json: { type: "boolean" },
  },
  async run(values, terminal) {
    const name = textOption(values, "name");
    const role = roles.find((one) => one === textOption(values, "role"));
    if (role === undefined) throw new UsageError(`--role must be one of ${roles.join(", ")}.`);
    if (name === undefined) throw new UsageError("--name needs a value.");
    const tenant = textOption(values, "tenant") ?? null;
    const millrace = await connect(values, terminal);
    const { key, text } = await createKey(millrace, name, role, tenant).finally(() =>
      millrace.stop(),
    );
    if (values.json === true) terminal.print(JSON.stringify({ ...keyFields(key), key: text }));
    else {
      terminal.printError(`Key ${key.id}: keep it, it is not shown again.`);
      terminal.print(text);
    }
    return 0;
  },
};

async function createKey(millrace: Millrace, name: string, role: Role, tenant: string | null) {
  const id = uuidv7();
  const secret = newSecret();
  const key = await millrace.store.service.keys.create(
    {
      id,
      role,
      name: checkName("name", name),
      tenant: tenant === null ? null : checkName("tenant", tenant),
      secretHash: hashOf(secret),
      rateLimit: null,
      expiresAt: null,
    },
    actor,
  );
  return { key, text: keyText({ id, secret }) };
}

const keyFields = (key: ApiKey) => ({
  id: key.id,
  name: key.name,
  role: key.role,
  tenant_id: key.tenant,
  expires_at: key.expiresAt,
  revoked_at: key.revokedAt,
  last_used_at: key.lastUsedAt,
  created_at: key.createdAt,
});

export const keysList: Command = {
  name: "keys list",
  summary: "which API keys there are",
  help: `millrace keys list – which API keys there are

Usage: millrace keys list [options]

Options:
${databaseHelp}
  --json             one JSON line per key
  -h, --help         this text

Examples:
  npx millrace keys list
  npx millrace keys list --json | jq -r 'select(.role == "robot") | .id'
`,
  options: { ...databaseOptions, json: { type: "boolean" } },
  async run(values, terminal) {
    const keys = await withMillrace(values, terminal, (millrace) =>
      millrace.store.service.keys.list(null),
    );
    for (const key of keys)
      terminal.print(values.json === true ? JSON.stringify(keyFields(key)) : line(key));
    if (keys.length === 0) terminal.printError("There is no key yet.");
    return 0;
  },
};

function line({ id, role, tenant, name, revokedAt }: ApiKey): string {
  const state = revokedAt === null ? "" : "  revoked";
  return `${id}  ${role.padEnd(8)}  ${plain(tenant ?? "all tenants").padEnd(12)}  ${plain(name)}${state}`;
}

export const keysRevoke: Command = {
  name: "keys revoke",
  summary: "revoke an API key",
  help: `millrace keys revoke – revoke an API key

Usage: millrace keys revoke --id <id> [options]

Within five seconds no server accepts it any more.

Options:
  --id <id>          of the key, as millrace keys list shows it
${databaseHelp}
  -h, --help         this text

Examples:
  npx millrace keys revoke --id 01890a5d-ac96-774b-bcce-b302099a8057
`,
  options: { id: { type: "string" }, ...databaseOptions },
  async run(values, terminal) {
    const id = textOption(values, "id");
    if (id === undefined || !/^[0-9a-f-]{36}$/i.test(id))
      throw new UsageError("--id needs a key's id.");
    const revoked = await withMillrace(values, terminal, (millrace) =>
      millrace.store.service.keys.revoke(id, actor),
    );
    if (revoked === null) throw new MillraceError("API_KEY_NOT_FOUND");
    terminal.print(`Revoked ${revoked.id} (${plain(revoked.name)}).`);
    return 0;
  },
};
