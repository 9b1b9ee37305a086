// Requests that nobody should send, made from the contract: broken JSON, wrong types, deep nesting, huge
// strings, odd Unicode, bad cursors, bad tokens. Whatever comes, the answer is a problem and not a crash.

import { expect } from "vitest";
import { contract as allRoutes } from "../../src/http/contract/contract.ts";
import type { Route } from "../../src/http/contract/route.ts";
import { adminKey, type Http } from "./http.ts";
import { randomOf } from "./random.ts";

/** A stream of events does not end by itself. */
const contract = allRoutes.filter(({ id }) => id !== "readEvents");

type Random = () => number;
const pick = <T>(random: Random, from: readonly T[]): T =>
  from[Math.floor(random() * from.length)] as T;

const oddText = (random: Random): string =>
  pick(random, [
    "",
    " ",
    "\u0000",
    "\ud800",
    "\u202e\u2066",
    "💥".repeat(80),
    "x".repeat(5_000),
    "'; drop table millrace.job; --",
    "../../etc/passwd",
    "%00",
    "\r\nX-Evil: 1",
    "__proto__",
    "NaN",
    "-1",
    "1e400",
    "99999999999999999999",
    "00000000-0000-0000-0000-000000000000/1",
    "ffffffff-ffff-ffff-ffff-ffffffffffff/999999999",
    "eyJsaXN0Ijoiam9icyIsInBsYWNlIjpbIngiXX0",
    "2026-13-45T99:99:99Z",
    "+infinity",
  ]);

const oddValue = (random: Random, depth = 0): unknown => {
  if (depth < 3 && random() < 0.3)
    return random() < 0.5
      ? Array.from({ length: Math.floor(4 * random()) }, () => oddValue(random, depth + 1))
      : Object.fromEntries(
          Array.from({ length: Math.floor(4 * random()) }, () => [
            oddText(random),
            oddValue(random, depth + 1),
          ]),
        );
  return pick(random, [null, true, false, -1, 0, 1.5, 1e308, -0, 2 ** 53, oddText(random)]);
};

const fieldNames = [
  ...new Set(
    contract.flatMap(({ query, params }) => [
      ...Object.keys(query?.shape ?? {}),
      ...Object.keys(params?.shape ?? {}),
    ]),
  ),
  ...["type", "payload", "queue", "jobs", "reference", "priority", "token", "status", "notes"],
  ...["result", "name", "role", "queue_name", "count", "wait_seconds", "filter", "confirm_count"],
];

function oddBody(random: Random): string {
  const luck = random();
  if (luck < 0.1)
    return pick(random, ["{", "[", '{"type":', '"', "nul", "{]", "\u0000", "{'a':1}"]);
  if (luck < 0.15) {
    const depth = Math.floor(30_000 * random());
    return `{"type":"t","payload":${"[".repeat(depth)}${"]".repeat(depth)}}`;
  }
  if (luck < 0.2) return JSON.stringify({ type: "t", payload: "x".repeat(300_000 * random()) });
  if (luck < 0.25) return `{"type":"t","payload":{"n":1e400,"\\u0000":"\\ud800"}}`;
  const fields = Array.from({ length: 1 + Math.floor(5 * random()) }, () => [
    pick(random, fieldNames),
    oddValue(random),
  ]);
  return JSON.stringify(Object.fromEntries(fields));
}

function oddPath(random: Random, route: Route): string {
  const path = route.path.replaceAll(/\{\w+\}/g, () =>
    encodeURIComponent(oddText(random).replace(/[\ud800-\udfff]/g, "?")),
  );
  if (random() < 0.5) return path;
  const query = Array.from({ length: 1 + Math.floor(3 * random()) }, () => {
    const value = encodeURIComponent(oddText(random).replace(/[\ud800-\udfff]/g, "?"));
    return `${pick(random, fieldNames)}=${random() < 0.1 ? "%E0%A4%A" : value}`;
  });
  return `${path}?${query.join("&")}`;
}

/** Waiting is no defect: a wait that is asked for by chance is kept short. */
const withoutWait = (text: string) => text.replaceAll("wait_seconds", "weight_seconds");

export async function survivesFuzz(http: Http, requests: number, seed: number): Promise<void> {
  const random = randomOf(seed, "fuzz");
  const statuses = new Map<number, number>();
  const failures: unknown[] = [];
  http.millrace.events.on("http.failed", (event) => failures.push(event));
  const one = async () => {
    const route = pick(random, contract);
    const method = random() < 0.05 ? "PUT" : route.method;
    const init: RequestInit = {
      method,
      headers: {
        authorization: random() < 0.95 ? `Bearer ${adminKey}` : "Bearer ???",
        "content-type": random() < 0.95 ? "application/json" : "text/xml",
        ...(random() < 0.1 ? { "idempotency-key": "k".repeat(1 + 300 * random()) } : {}),
      },
      ...(method === "GET" ? {} : { body: withoutWait(oddBody(random)) }),
    };
    const path = withoutWait(oddPath(random, route));
    const answer = await fetch(`${http.baseUrl}${path}`, init);
    const text = await answer.text();
    statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
    if (answer.status >= 500) failures.push(`${method} ${path}: ${answer.status} ${text}`);
    if (answer.status >= 400) JSON.parse(text);
  };
  for (let sent = 0; sent < requests; sent += 20)
    await Promise.all(Array.from({ length: Math.min(20, requests - sent) }, one));
  console.log(JSON.stringify(Object.fromEntries([...statuses].sort(([a], [b]) => a - b))));
  expect(failures).toEqual([]);
  expect(statuses.get(400) ?? 0).toBeGreaterThan(requests / 4);
  expect((await http.call("GET", "/readyz")).body.status).toBe("ready");
}
