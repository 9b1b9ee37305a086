// Writes docs/reference/http.md from the contract, so that the page cannot say what the service does not.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { repositoryRoot } from "./checker.mjs";

const file = "docs/reference/http.md";
const help = `Usage: node scripts/http-reference.mjs [--check]

Writes ${file} from the built contract (run npm run build first).

  --check   only say whether the page is up to date
  --help    this text
`;

const intro = `# HTTP reference

Generated from the contract by \`npm run reference\`. The same as OpenAPI 3.1: \`GET /api/openapi.json\`.

JSON in and out, names in snake_case, times in ISO 8601 (UTC). A trailing slash never matters. Every call but the public ones carries \`Authorization: Bearer <key>\`, or the cookie of a session (see [security](../guides/security.md)); _who_ names the roles that may call, and those above them (\`staff\` ⊂ \`manager\` ⊂ \`admin\`) may as well. Lists are read page by page: pass \`next_cursor\` as \`cursor\` until it is null.

Errors are \`application/problem+json\`; their \`code\` is stable. Beside the codes named with each route, every route may answer \`REQUEST_INVALID\` (400), \`UNAUTHENTICATED\` (401), \`FORBIDDEN\` (403), \`CROSS_SITE_REFUSED\` (403), \`BODY_TOO_LARGE\` (413), \`MEDIA_TYPE_UNSUPPORTED\` (415), \`RATE_LIMITED\` (429, with \`Retry-After\`), \`INTERNAL\` (500), and \`DATABASE_UNAVAILABLE\` and \`IDENTITY_UNAVAILABLE\` (503, with \`Retry-After\`).
`;

async function main() {
  const { values } = parseArgs({
    options: { check: { type: "boolean" }, help: { type: "boolean" } },
  });
  if (values.help) return process.stdout.write(help);
  const text = await render();
  const path = join(repositoryRoot, file);
  if (!values.check) return writeFileSync(path, text);
  if (readFileSync(path, "utf8") === text) return;
  console.log(`${file} is not what the contract says; run npm run reference`);
  process.exitCode = 1;
}

async function render() {
  const dist = (name) => import(join(repositoryRoot, "dist", "http", name));
  const [{ contract }, { createOpenApi }, { statusOf }] = await Promise.all([
    dist("contract/contract.js"),
    dist("openapi.js"),
    dist("problem-status.js"),
  ]);
  const { paths, components } = createOpenApi("");
  const tags = [...new Set(contract.map(({ tag }) => tag))];
  const parts = tags.map((tag) => {
    const own = contract.filter((route) => route.tag === tag);
    return `## ${tag}\n\n${own.map((route) => routeText(route, paths, statusOf)).join("\n")}`;
  });
  const shapes = Object.keys(components.schemas)
    .sort()
    .map((name) => shapeText(name, components.schemas[name]));
  return `${intro}\n${parts.join("\n")}\n## Shapes\n\n${shapes.join("\n")}`;
}

function routeText(route, paths, statusOf) {
  const operation = paths[route.path][route.method.toLowerCase()];
  const who = route.access === "public" ? "everybody" : route.access.map(code).join(", ");
  const lines = [
    `### ${route.method} ${route.path}`,
    "",
    `${route.summary}${route.summary.endsWith("?") ? "" : "."} _Who:_ ${who}.`,
    "",
  ];
  if (route.description) lines.push(route.description, "");
  const parameters = (operation.parameters ?? []).filter((one) => one.in !== "path");
  if (parameters.length > 0) lines.push(...table("Parameter", parameters.map(parameterRow)), "");
  const body = operation.requestBody?.content["application/json"].schema;
  if (body)
    lines.push(`Body: ${typeOf(body)}${operation.requestBody.required ? "" : ", or none"}.`, "");
  for (const [status, answer] of Object.entries(route.answers)) {
    const schema = operation.responses[status].content?.["application/json"]?.schema;
    lines.push(`- **${status}** ${answer.description}${schema ? ` ${typeOf(schema)}` : ""}`);
  }
  for (const refusal of route.refusals) lines.push(`- ${statusOf(refusal)} \`${refusal}\``);
  return `${lines.join("\n")}\n`;
}

const code = (text) => `\`${text}\``;
const cell = (text) => String(text).replaceAll("|", "\\|").replaceAll("\n", " ");

const parameterRow = ({ name, required, schema, description, in: place }) => [
  code(name) + (place === "header" ? " (header)" : ""),
  typeOf(schema),
  [required ? "required" : "", description ?? ""].filter(Boolean).join("; "),
];

function shapeText(name, schema) {
  if (schema.properties === undefined) return `### ${name}\n\n${typeOf(schema)}\n`;
  const required = new Set(schema.required ?? []);
  const rows = Object.entries(schema.properties).map(([field, shape]) => [
    code(field) + (required.has(field) ? "" : " (optional)"),
    typeOf(shape),
    shape.description ?? "",
  ]);
  return `### ${name}\n\n${table("Field", rows).join("\n")}\n`;
}

/** Columns are padded as the formatter of this repository pads them. */
function table(first, rows) {
  const all = [[first, "Type", "Meaning"], ...rows.map((row) => row.map(cell))];
  const widths = [0, 1, 2].map((i) => Math.max(3, ...all.map((row) => row[i].length)));
  const line = (row) => `| ${row.map((text, i) => text.padEnd(widths[i])).join(" | ")} |`;
  const rule = `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`;
  const [head, ...body] = all.map(line);
  return [head, rule, ...body];
}

function typeOf(schema) {
  if (schema.$ref) return shapeLink(schema.$ref.split("/").at(-1));
  const options = schema.anyOf ?? schema.oneOf;
  if (options) return [...new Set(options.map(typeOf))].join(" or ");
  if (schema.enum) return schema.enum.map((value) => code(value)).join(", ");
  if (schema.const !== undefined) return code(schema.const);
  if (Array.isArray(schema.type)) return schema.type.join(" or ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  if (schema.type === "object") return "object";
  if (schema.type === undefined) return "any JSON";
  const range = rangeOf(schema);
  return [
    schema.format === "uuid" ? "UUID" : schema.format === "date-time" ? "time" : schema.type,
    range,
  ]
    .filter(Boolean)
    .join(" ");
}

const shapeLink = (name) => `[${name}](#${name.toLowerCase()})`;

function rangeOf({ type, minimum, maximum, minLength, maxLength, format }) {
  const huge = Number.MAX_SAFE_INTEGER;
  if (type === "integer" || type === "number") {
    const [from, to] = [
      minimum > -huge ? minimum : undefined,
      maximum < huge ? maximum : undefined,
    ];
    if (from !== undefined && to !== undefined) return `${from} to ${to}`;
    return from !== undefined ? `from ${from}` : to !== undefined ? `to ${to}` : "";
  }
  if (type === "string" && !format && maxLength !== undefined)
    return `of ${minLength ?? 0} to ${maxLength} characters`;
  return "";
}

await main();
