// The contract as an OpenAPI 3.1 document.

import { z } from "zod";
import { type ErrorCode, errorCodes } from "../domain/errors.ts";
import { contract } from "./contract/contract.ts";
import "./contract/problem.ts";
import { type Answer, type Route, requests, responses } from "./contract/route.ts";
import { statusOf } from "./problem-status.ts";

type Json = Record<string, unknown>;

const uri = (id: string) => `#/components/schemas/${id}`;

/** What every route may answer, depending on what it takes. */
function commonRefusals(route: Route): ErrorCode[] {
  const open: ErrorCode[] = ["DATABASE_UNAVAILABLE", "INTERNAL"];
  const takesInput = route.params ?? route.query ?? route.headers ?? route.body;
  // Who takes nothing refuses a query, but for those that are open to all.
  const isChecked = takesInput !== undefined || route.access !== "public";
  const input: ErrorCode[] = isChecked ? ["REQUEST_INVALID"] : [];
  const body: ErrorCode[] =
    route.body === undefined ? [] : ["BODY_TOO_LARGE", "MEDIA_TYPE_UNSUPPORTED"];
  const access: ErrorCode[] =
    route.access === "public"
      ? []
      : ["UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED", "IDENTITY_UNAVAILABLE"];
  const browser: ErrorCode[] =
    route.method === "GET" ? [] : ["CROSS_SITE_REFUSED", "MEDIA_TYPE_UNSUPPORTED"];
  return [...input, ...access, ...body, ...browser, ...open];
}

export const refusalsOf = (route: Route): ErrorCode[] => [
  ...new Set([...commonRefusals(route), ...route.refusals]),
];

export function createOpenApi(version: string): Json {
  const tags = [...new Set(contract.map(({ tag }) => tag))].map((name) => ({ name }));
  const paths: Record<string, Json> = {};
  for (const route of contract) {
    const path = paths[route.path] ?? {};
    paths[route.path] = path;
    path[route.method.toLowerCase()] = operation(route);
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Millrace",
      version,
      summary: "A durable job queue",
      description: "Jobs, items for robots, dead letters and their repair, over HTTP.",
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags,
    paths,
    components: {
      schemas: { ...schemasOf(requests, "input"), ...schemasOf(responses, "output") },
      securitySchemes: {
        key: {
          type: "http",
          scheme: "bearer",
          description: "An API key, or a JWT where the server accepts some.",
        },
        session: {
          type: "apiKey",
          in: "cookie",
          name: "millrace_session",
          description: "Made by `POST /api/session`. Over TLS it is `__Host-millrace_session`.",
        },
      },
    },
  };
}

function schemasOf(registry: typeof requests, io: "input" | "output"): Json {
  const { schemas } = z.toJSONSchema(registry, { uri, io, unrepresentable: "any" });
  return Object.fromEntries(
    Object.entries(schemas).map(([id, schema]) => [id, withoutDialect(schema as Json)]),
  );
}

function withoutDialect({ $schema: _, $id: __, id: ___, ...schema }: Json): Json {
  return schema;
}

function operation(route: Route): Json {
  return {
    operationId: route.id,
    tags: [route.tag],
    summary: route.summary,
    ...(route.description === undefined ? {} : { description: route.description }),
    security: securityOf(route),
    "x-access": route.access,
    ...parametersOf(route),
    ...bodyOf(route),
    responses: answersOf(route),
  };
}

function securityOf({ access, bearerOnly }: Route): Json[] {
  if (access === "public") return [];
  return bearerOnly === true ? [{ key: [] }] : [{ key: [] }, { session: [] }];
}

function parametersOf(route: Route): Json {
  const parameters = (["params", "query", "headers"] as const).flatMap((part) =>
    Object.entries(route[part]?.shape ?? {}).map(([name, schema]) =>
      parameter(part, name, schema as z.ZodType),
    ),
  );
  return parameters.length === 0 ? {} : { parameters };
}

/** As it is usually written: `Idempotency-Key`. */
const headerName = (name: string): string =>
  name.replace(/(?:^|-)[a-z]/g, (letter) => letter.toUpperCase());

const places = { params: "path", query: "query", headers: "header" } as const;

function parameter(part: keyof typeof places, name: string, schema: z.ZodType): Json {
  const { description, ...json } = withoutDialect(
    z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json,
  );
  const isRequired = part === "params" || !schema.safeParse(undefined).success;
  return {
    name: part === "headers" ? headerName(name) : name,
    in: places[part],
    required: isRequired,
    ...(description === undefined ? {} : { description }),
    // What is coerced has any input, and some type all the same.
    schema: Object.keys(json).length === 0 ? coercedType(schema) : json,
  };
}

const coercedType = (schema: z.ZodType): Json =>
  withoutDialect(z.toJSONSchema(schema, { io: "output", unrepresentable: "any" }) as Json);

function bodyOf({ body }: Route): Json {
  if (body === undefined) return {};
  return {
    requestBody: {
      required: !body.safeParse(undefined).success,
      content: { "application/json": { schema: reference(body, requests) } },
    },
  };
}

/** A schema by its name, or several of them as alternatives. */
function reference(schema: z.ZodType, registry: typeof requests): Json {
  const id = registry.get(schema)?.id;
  if (id !== undefined) return { $ref: uri(id) };
  if (schema instanceof z.ZodOptional) return reference(schema.unwrap() as z.ZodType, registry);
  if (schema instanceof z.ZodUnion)
    return { anyOf: schema.options.map((option) => reference(option as z.ZodType, registry)) };
  throw new TypeError("a body's schema needs a name");
}

function contentOf({ body, contentType = "application/json" }: Answer): Json {
  if (body === undefined && contentType === "application/json") return {};
  const schema = body === undefined ? { type: "string" } : reference(body, responses);
  return { content: { [contentType]: { schema } } };
}

function answersOf(route: Route): Json {
  const answers: Json = {};
  for (const [status, answer] of Object.entries(route.answers))
    answers[status] = { description: answer.description, ...contentOf(answer) };
  const byStatus = new Map<number, ErrorCode[]>();
  for (const code of refusalsOf(route))
    byStatus.set(statusOf(code), [...(byStatus.get(statusOf(code)) ?? []), code]);
  for (const [status, codes] of [...byStatus].sort(([a], [b]) => a - b)) {
    if (String(status) in answers) continue;
    answers[status] = {
      description: codes.map((code) => `\`${code}\`: ${errorCodes[code]}`).join(" "),
      content: { "application/problem+json": { schema: { $ref: uri("Problem") } } },
    };
  }
  return answers;
}
