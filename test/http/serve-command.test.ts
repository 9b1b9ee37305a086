import { expect, test } from "vitest";
import { type CommandLine, CommandStage } from "../support/command-line.ts";
import { send } from "../support/http.ts";
import { until } from "../support/until.ts";

const stage = new CommandStage("test");

async function urlOf(server: CommandLine): Promise<string> {
  await server.said('"ready"');
  return JSON.parse(server.out.split("\n")[0] ?? "").url;
}

test("serves with the admin key, manages with --manager, and stops cleanly", async () => {
  const key = "an-admin-key-of-the-environment-42";
  const env = { MILLRACE_ADMIN_KEY: key, PORT: "0" };
  const server = stage.start(["serve", "--json", "--manager"], env);
  const url = await urlOf(server);
  expect((await send(url, "GET", "/api/jobs", { key })).status).toBe(200);
  expect((await send(url, "GET", "/api/jobs", { key: null })).status).toBe(401);
  await until("a leader is in office", async () => {
    const { body } = await send(url, "GET", "/readyz");
    return body.parts.leader === "in_office";
  });
  const waiting = send(url, "GET", "/api/queue-items/next?queue_name=default&wait_seconds=60", {
    key,
  });
  const made = await send(url, "POST", "/api/jobs", { key, body: { type: "t", delay_ms: 50 } });
  expect(made.status).toBe(201);
  await until("the job falls due", async () => {
    const { body } = await send(url, "GET", `/api/jobs/${made.body.id}`, { key });
    return body.state !== "scheduled";
  });
  expect([200, 404]).toContain((await waiting).status);
  const ended = await server.stop("SIGTERM");
  expect([ended.code, ended.err]).toEqual([0, ""]);
});

test("keys are made, listed and revoked by commands", async () => {
  const made = await stage.run([
    ...["keys", "create", "--role", "robot", "--tenant", "acme", "--name", "r2"],
  ]);
  expect(made.code).toBe(0);
  const key = made.out.trim();
  const server = stage.start(["serve", "--json", "--port", "0"]);
  const url = await urlOf(server);
  const next = "/api/queue-items/next?queue_name=nothing";
  expect((await send(url, "GET", next, { key })).status).toBe(404);
  const listed = await stage.run(["keys", "list", "--json"]);
  const { id, ...rest } = JSON.parse(listed.out);
  expect(rest).toMatchObject({ name: "r2", role: "robot", tenant_id: "acme", revoked_at: null });
  expect(listed.out).not.toContain(key);
  expect((await stage.run(["keys", "revoke", "--id", id])).code).toBe(0);
  await until("it is refused", async () => (await send(url, "GET", next, { key })).status === 401);
  expect((await stage.run(["keys", "list"])).out).toContain("revoked");
});

test("says what is wrong with a call", async () => {
  const open = await stage.run(["serve", "--host", "0.0.0.0", "--port", "0"]);
  expect(open.code).toBe(1);
  expect(open.err).toContain("There is no API key yet");
  const role = await stage.run(["keys", "create", "--role", "king", "--name", "x"]);
  expect(role.code).toBe(2);
  expect(role.err).toContain("--role must be one of");
  const unknown = await stage.run(["keys", "creat"]);
  expect(unknown.err).toContain('Did you mean "keys create"?');
  const short = await stage.run(["serve", "--for", "0"], { MILLRACE_ADMIN_KEY: "short" });
  expect(short.err).toContain("at least 24 characters");
  expect((await stage.run(["help", "keys", "create"])).out).toContain("millrace keys create");
});
