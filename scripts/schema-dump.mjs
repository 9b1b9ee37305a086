// Renders a schema as text, from the catalog, the same on every supported PostgreSQL version.
// Partitions by range (history's days) come and go and are left out. The text is for reading and
// comparing: privileges and rows are not in it.
import { readCatalog } from "./schema-catalog.mjs";

const storageWords = { p: "PLAIN", e: "EXTERNAL", m: "MAIN", x: "EXTENDED" };
const compressionWords = { p: "pglz", l: "lz4" };
const commandWords = { r: "SELECT", a: "INSERT", w: "UPDATE", d: "DELETE", "*": "ALL" };

/** `client` is one connection with `query(text, values)`. The schema is called `millrace` in the text. */
export async function dumpSchema(client, schemaName) {
  const catalog = await readCatalog(client, schemaName);
  const tables = lastingTables(catalog.tables);
  const sections = [
    ...byName(catalog.enums).map(renderEnum),
    ...byName(catalog.sequences).map(renderSequence),
    ...byName(tables).map((table) => renderTable(table, catalog)),
    ...byName(catalog.views).map((view) => renderView(view, catalog)),
    ...byName(catalog.functions).map(renderFunction),
  ];
  const text = `${sections.map((lines) => lines.join("\n")).join("\n\n")}\n`;
  return rename(text, schemaName);
}

function lastingTables(tables) {
  const byId = new Map(tables.map((table) => [table.id, table]));
  const isDated = (table) =>
    table !== undefined &&
    (table.bound?.startsWith("FOR VALUES FROM") || isDated(byId.get(table.parent_id)));
  return tables.filter((table) => !isDated(table));
}

function renderEnum({ name, labels, comment }) {
  return [
    `CREATE TYPE ${name} AS ENUM (${labels.map(quote).join(", ")});`,
    ...note("TYPE", name, comment),
  ];
}

function renderSequence({ name, owner, comment, ...sequence }) {
  const range = `MINVALUE ${sequence.minimum} MAXVALUE ${sequence.maximum}`;
  const steps = `START ${sequence.start} INCREMENT ${sequence.increment} CACHE ${sequence.cache}`;
  const ending = (sequence.cycles ? " CYCLE" : "") + (owner ? ` OWNED BY ${owner}` : "");
  return [
    `CREATE SEQUENCE ${name} AS ${sequence.type}`,
    `  ${steps} ${range}${ending};`,
    ...note("SEQUENCE", name, comment),
  ];
}

function renderTable(table, catalog) {
  const { name } = table;
  const of = (rows) => byName(rows.filter((row) => row.table_id === table.id));
  const columns = catalog.columns.filter((column) => column.table_id === table.id);
  const constraints = of(catalog.constraints);
  const body = [
    ...(table.parent ? [] : columns.map(renderColumn)),
    ...constraints.map((constraint) => `CONSTRAINT ${constraint.name} ${constraint.definition}`),
  ];
  const alone = [...of(catalog.indexes), ...of(catalog.statistics), ...of(catalog.triggers)];
  return [
    ...renderTableHead(table, body),
    ...alone.map(({ definition }) => `${definition};`),
    ...renderRowSecurity(table, of(catalog.policies)),
    ...note("TABLE", name, table.comment),
    ...columns.flatMap((column) => note("COLUMN", `${name}.${column.name}`, column.comment)),
    ...constraints.flatMap((one) => note("CONSTRAINT", `${one.name} ON ${name}`, one.comment)),
    ...of(catalog.indexes).flatMap((index) => note("INDEX", index.name, index.comment)),
  ];
}

function renderTableHead(table, body) {
  const kind = table.persistence === "u" ? "UNLOGGED TABLE" : "TABLE";
  const parent = table.parent ? ` PARTITION OF ${table.parent}` : "";
  const list = body.map((line, index) => `  ${line}${index < body.length - 1 ? "," : ""}`);
  const tail = [];
  if (table.parent) tail.push(table.bound);
  if (table.partition_key) tail.push(`PARTITION BY ${table.partition_key}`);
  if (table.options.length > 0) tail.push(`WITH (${sorted(table.options).join(", ")})`);
  const end = tail.length > 0 ? ` ${tail.join(" ")};` : ";";
  const head = `CREATE ${kind} ${table.name}${parent}`;
  return list.length > 0 ? [`${head} (`, ...list, `)${end}`] : [head + end];
}

function renderColumn(column) {
  const words = [column.name, column.type];
  if (column.storage) words.push(`STORAGE ${storageWords[column.storage]}`);
  if (column.compression) words.push(`COMPRESSION ${compressionWords[column.compression]}`);
  if (column.collation) words.push(`COLLATE ${column.collation}`);
  if (column.required) words.push("NOT NULL");
  if (column.generated) {
    const kind = column.generated === "s" ? "STORED" : "VIRTUAL";
    words.push(`GENERATED ALWAYS AS (${column.default}) ${kind}`);
  } else if (column.default !== null) words.push(`DEFAULT ${column.default}`);
  if (column.identity) {
    words.push(`GENERATED ${column.identity === "a" ? "ALWAYS" : "BY DEFAULT"} AS IDENTITY`);
  }
  if (column.statistics !== null) words.push(`/* STATISTICS ${column.statistics} */`);
  if (column.options.length > 0) words.push(`/* ${sorted(column.options).join(", ")} */`);
  return words.join(" ");
}

function renderRowSecurity(table, policies) {
  const lines = policies.map((policy) => {
    const kind = policy.permissive ? "" : " AS RESTRICTIVE";
    const roles = policy.roles.length > 0 ? policy.roles.join(", ") : "PUBLIC";
    const using = policy.using ? ` USING (${policy.using})` : "";
    const checked = policy.checked ? ` WITH CHECK (${policy.checked})` : "";
    const command = commandWords[policy.command];
    return `CREATE POLICY ${policy.name} ON ${table.name}${kind} FOR ${command} TO ${roles}${using}${checked};`;
  });
  if (table.forced_row_security)
    lines.unshift(`ALTER TABLE ${table.name} FORCE ROW LEVEL SECURITY;`);
  if (table.row_security) lines.unshift(`ALTER TABLE ${table.name} ENABLE ROW LEVEL SECURITY;`);
  return lines;
}

function renderView({ id, name, materialized, comment }, catalog) {
  const kind = materialized ? "MATERIALIZED VIEW" : "VIEW";
  const columns = catalog.columns.filter((column) => column.table_id === id);
  const list = columns.map((column) => `${column.name} /* ${column.type} */`).join(", ");
  return [`CREATE ${kind} ${name} (${list}) AS …;`, ...note(kind, name, comment)];
}

function renderFunction({ name, kind, definition, comment }) {
  const word = kind === "p" ? "PROCEDURE" : "FUNCTION";
  return [`${definition.trimEnd().replace(/[ \t]+$/gm, "")};`, ...note(word, name, comment)];
}

// Another schema's dump (a test's own, say) reads as if it were called millrace. Function bodies
// name the schema in quotes, as the migrator rendered it.
function rename(text, schemaName) {
  const escaped = schemaName.replace(/[^\w]/g, "\\$&");
  return text.replace(
    new RegExp(`(?<![\\w$])(?:"${escaped}"|${escaped})(?![\\w$])`, "g"),
    "millrace",
  );
}

const quote = (text) => `'${text.replaceAll("'", "''")}'`;
const note = (kind, name, comment) =>
  comment === null ? [] : [`COMMENT ON ${kind} ${name} IS ${quote(comment)};`];
const sorted = (values) => [...values].sort();
const byName = (rows) => [...rows].sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
