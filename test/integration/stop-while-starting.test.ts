// Whoever is told to stop while it begins ends, and says STOPPED: a SIGTERM comes when it comes.

import { afterEach, beforeEach, expect, test } from "vitest";
import { MetricsServer } from "../../src/http/metrics-server.ts";
import { HttpServer } from "../../src/http/server.ts";
import { defineJob, type Millrace } from "../../src/index.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { TcpProxy } from "../support/tcp-proxy.ts";
import { until } from "../support/until.ts";

const instances = useMillrace();
const adminKey = "an admin key that is long enough";

let proxy: TcpProxy;
let other: Millrace;
beforeEach(async () => {
  proxy = await TcpProxy.start(instances.url);
  // Its connections, and no others, are called so.
  other = await instances.connect({ databaseUrl: proxy.url });
});
afterEach(() => proxy.close());

const leases = () => instances.query("select id from millrace.lease");
/** Of the instance that is behind the proxy: there is nobody else who works, listens or stands in for a leader. */
const connections = () =>
  instances.query<{ name: string }>(
    `select application_name as name from pg_stat_activity where datname = current_database()
    and application_name ~ '^millrace (worker|lease|listener|upkeep|triggers|settler)'`,
  );
const nothingIsLeft = () =>
  until("its connections are closed", async () => (await connections()).length === 0);

/** What the start is busy with when stop() is called. */
const moments = [
  ["reads its queues", "read_queues"],
  ["opens its lease", "open_lease"],
] as const;

test.each(moments)("a worker that %s when Millrace stops never claims", async (_, statement) => {
  const job = defineJob({ type: "t", queue: newQueue(), run: () => 1 });
  const claims: string[] = [];
  other.events.on("job.started", ({ id }) => claims.push(id));
  const held = proxy.holdCommit(statement);
  const working = refusal(other.work([job]));
  const goOn = await held;
  const stopping = other.stop();
  goOn();
  await stopping;
  expect((await working).code).toBe("STOPPED");
  await nothingIsLeft();
  expect(await leases()).toEqual([]);
  const { id } = await instances.millrace.enqueue(job, 1);
  await (await instances.connect()).work([job]);
  expect(await instances.millrace.result(id)).toBe(1);
  expect(claims).toEqual([]);
});

test("notifications that begin when Millrace stops end with it", async () => {
  const held = proxy.holdCommit("open_lease");
  const starting = refusal(other.notifications.start());
  const goOn = await held;
  const stopping = other.stop();
  goOn();
  await stopping;
  expect((await starting).code).toBe("STOPPED");
  await nothingIsLeft();
});

test("an HTTP server that is stopped while it starts does not listen, and can be started again", async () => {
  const server = new HttpServer({ millrace: other, port: 0, adminKey });
  const starting = refusal(server.start());
  await server.stop();
  expect((await starting).code).toBe("STOPPED");
  expect(() => server.url).toThrow(expect.objectContaining({ code: "STOPPED" }));
  await nothingIsLeft();
  await Promise.all([server.start(), server.start()]);
  expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  await server.stop();
  await nothingIsLeft();
});

test("so with the metrics of a process", async () => {
  const server = new MetricsServer({ millrace: other, port: 0 });
  const starting = refusal(server.start());
  await server.stop();
  expect((await starting).code).toBe("STOPPED");
  await server.start();
  expect((await fetch(server.url)).status).toBe(200);
  await server.stop();
});
