// The contract as an OpenAPI 3.1 document.

import { z } from "zod";
import { type ErrorCode, errorCodes } from "../domain/errors.ts";
import { contract } from "./contract/contract.ts";
import "./contract/problem.ts";
import { type Route, requests, responses } from "./contract/route.ts";
import { statusOf } from "./problem-status.ts";

type Json = Record<string, unknown>;

const uri = (id: string) => `#/components/schemas/${id}`;

/** What every route may answer, depending on what it takes. */
function commonRefusals(route: Route): ErrorCode[] {
  const open: ErrorCode[] = ["DATABASE_UNAVAILABLE", "INTERNAL"];
  const takesInput = route.params ?? route.query ?? route.headers ?? route.body;
  const input: ErrorCode[] = takesInput === undefined ? [] : ["REQUEST_INVALID"];
  const body: ErrorCode[] =
    route.body === undefined ? [] : ["BODY_TOO_LARGE", "MEDIA_TYPE_UNSUPPORTED"];
  const access: ErrorCode[] =
    route.access === "public" ? [] : ["UNAUTHENTICATED", "FORBIDDEN", "RATE_LIMITED"];
  return [...input, ...access, ...body, ...open];
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
      securitySchemes: { key: { type: "http", scheme: "bearer" } },
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
    security: route.access === "public" ? [] : [{ key: [] }],
    "x-access": route.access,
    ...parametersOf(route),
    ...bodyOf(route),
    responses: answersOf(route),
  };
}

function parametersOf(route: Route): Json {
  const parameters = (["params", "query", "headers"] as const).flatMap((part) =>
    Object.entries(route[part]?.shape ?? {}).map(([name, schema]) =>
      parameter(part, name, schema as z.ZodType),
    ),
  );
  return parameters.length === 0 ? {} : { parameters };
}

const places = { params: "path", query: "query", headers: "header" } as const;

function parameter(part: keyof typeof places, name: string, schema: z.ZodType): Json {
  const { description, ...json } = withoutDialect(
    z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Json,
  );
  const isRequired = part === "params" || !schema.safeParse(undefined).success;
  return {
    name: part === "headers" ? "Idempotency-Key" : name,
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

const jsonType = "application/json";

function answersOf(route: Route): Json {
  const answers: Json = {};
  for (const [status, { description, body, contentType = jsonType }] of Object.entries(
    route.answers,
  )) {
    const content =
      body === undefined
        ? {}
        : { content: { [contentType]: { schema: reference(body, responses) } } };
    answers[status] = { description, ...content };
  }
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
