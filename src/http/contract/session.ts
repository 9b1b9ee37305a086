import { z } from "zod";
import { roles } from "../../store/api-key.ts";
import * as field from "./fields.ts";
import { defineRoute, request, response } from "./route.ts";

const tag = "Session";
const everyRole = ["producer", "robot", "staff"] as const;

const session = response(
  "Session",
  z.object({
    name: z.string(),
    role: z.enum(roles),
    tenant: z.string().nullable().describe("Null: of all tenants."),
    expires_at: field.timeOut
      .nullable()
      .describe("At the latest. Null: there is no session, a key was shown."),
  }),
);

const secret = z.string().regex(/^[\x21-\x7e]{1,4096}$/, "must be printable characters");

export const createSession = defineRoute({
  id: "createSession",
  tag,
  method: "POST",
  path: "/api/session",
  summary: "Sign in with a key, or with a ticket that is good once",
  description:
    "Answers with a cookie that scripts cannot read. A session ends after twelve hours, after one hour without a request, and with its key.",
  access: "public",
  body: request(
    "SignIn",
    z.union([z.strictObject({ key: secret }), z.strictObject({ ticket: secret })]),
  ),
  answers: { 200: { description: "Signed in.", body: session } },
  refusals: ["UNAUTHENTICATED", "RATE_LIMITED"],
});

export const readSession = defineRoute({
  id: "readSession",
  tag,
  method: "GET",
  path: "/api/session",
  summary: "Who am I?",
  access: everyRole,
  answers: { 200: { description: "Whose key or session it is.", body: session } },
  refusals: [],
});

export const deleteSession = defineRoute({
  id: "deleteSession",
  tag,
  method: "DELETE",
  path: "/api/session",
  summary: "Sign out",
  access: everyRole,
  answers: { 204: { description: "The session is over, if there was one." } },
  refusals: [],
});
