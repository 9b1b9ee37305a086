// The robots of examples/ at work on a real service.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

const http = useHttp();
const examples = join(import.meta.dirname, "..", "..", "examples");

async function run(command: string, args: readonly string[], key: string) {
  const env = { PATH: process.env.PATH, MILLRACE_URL: http.baseUrl, MILLRACE_KEY: key };
  const child = spawn(command, args, { cwd: examples, env });
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  await once(child, "close");
  return { code: child.exitCode, output };
}

async function queueOf(payloads: readonly unknown[], key: string): Promise<[string, string[]]> {
  const body = { name: newQueue(), tenant_id: "acme", max_retries: 3 };
  const { id, name } = (await http.call("POST", "/api/queues", { body })).body;
  const ids: string[] = [];
  for (const [n, payload] of payloads.entries()) {
    const item = { queue_id: id, payload, reference: `r${n}` };
    ids.push((await http.call("POST", "/api/queue-items", { key, body: item })).body.id);
  }
  return [name, ids];
}

const read = async (id: string, key: string) =>
  (await http.call("GET", `/api/queue-items/${id}`, { key })).body;

test("the robot in Python does its items, and tells business from application exceptions", async () => {
  const key = await http.key("robot", "acme");
  const payloads = [{ amount: 10 }, { amount: -1 }, { amount: "ten" }, { amount: 2.5 }];
  const [name, ids] = await queueOf(payloads, key);
  const { code, output } = await run("python3", ["robot-python/robot.py", name, "4"], key);
  expect(code, output).toBe(0);
  const items = await Promise.all(ids.map((id) => read(id, key)));
  expect(items).toMatchObject([
    { status: "DONE", result: { total: 12 } },
    { status: "FAILED", exception_type: "business" },
    { status: "NEW", retries: 1 },
    { status: "DONE", result: { total: 3 } },
  ]);
  const wrong = await run("python3", ["robot-python/robot.py", "nowhere", "1"], key);
  expect(wrong.code).toBe(1);
  expect(wrong.output).toContain("404 QUEUE_NOT_FOUND");
});

test("the robot in shell does its items", async () => {
  const key = await http.key("robot", "acme");
  const [name, ids] = await queueOf(["twelve words", "", "six"], key);
  const { code, output } = await run("bash", ["robot-shell/robot.sh", name, "3"], key);
  expect(code, output).toBe(0);
  const items = await Promise.all(ids.map((id) => read(id, key)));
  expect(items).toMatchObject([
    { status: "DONE", result: { length: 12 } },
    { status: "NEW", retries: 1 },
    { status: "DONE", result: { length: 3 } },
  ]);
});
