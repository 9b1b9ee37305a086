// Server-sent events: what is told, in which order, and for how long.

import { randomUUID } from "node:crypto";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { HttpServer } from "../../src/http/server.ts";
import { type EventWatcher, useWatchers } from "../support/event-watcher.ts";
import { adminKey, useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";
import { until } from "../support/until.ts";

export function eventsSuite(): void {
  const http = useHttp();
  const { watch, makeQueue, makeBreaker } = useWatchers(http);

  /** An event of this tenant whose transaction is still open. */
  async function holdEvent(tenant: string) {
    const client = new pg.Client({ connectionString: http.url });
    await client.connect();
    await client.query("begin");
    await client.query("insert into millrace.tenant (name, paused_at) values ($1, now())", [
      tenant,
    ]);
    return async () => {
      await client.query("commit");
      await client.end();
    };
  }

  describe("an event", () => {
    test("is told of queues, jobs and what operators do, without error texts and payloads", async () => {
      const watcher = await watch();
      const { id, name } = await makeQueue({ tenant_id: "acme" });
      const robot = await http.key("robot", "acme");
      await http.call("POST", `/api/queues/${id}/pause`);
      await http.call("POST", `/api/queues/${id}/resume`);
      await http.call("PUT", `/api/queues/${id}`, { body: { description: "d" } });
      const [first, second] = [await dieOnce(http, robot, id), await dieOnce(http, robot, id)];
      const [path, body] = ["/api/jobs/admin/dlq", { notes: "again" }];
      const again = await http.call("POST", `${path}/${first}/reprocess`, { body });
      await http.call("POST", `${path}/${second}/discard`, { body });
      const asked = await http.call("DELETE", `/api/queues/${id}?confirm_count=1000`);
      const { count } = asked.body.details;
      await http.call("DELETE", `/api/queues/${id}?confirm_count=${count}`);
      const ofQueue = ({ data }: { data: { queue_id: number } }) => data.queue_id === id;
      await watcher.waitFor("queue.deleted", ofQueue);
      const told = watcher.heard.filter(({ data }) => data.data && ofQueue(data));
      expect(told.map(({ event }) => event)).toEqual([
        ...["queue.created", "queue.changed", "queue.paused", "queue.resumed", "queue.changed"],
        ...["job.dead", "job.dead", "job.reprocessed", "job.discarded"],
        ...["queue.changed", "queue.deleted"],
      ]);
      expect(told.every(({ data }) => data.tenant_id === "acme" && data.data.queue === name)).toBe(
        true,
      );
      expect(told[0]?.data).toEqual({
        kind: "queue.created",
        at: expect.any(String),
        tenant_id: "acme",
        data: { queue: name, queue_id: id, is_active: true, paused: false },
      });
      expect(told[5]?.data.data).toMatchObject({ count: 1, jobs: [{ id: first }] });
      const link = { id: first, new_id: again.body.new_job_id };
      expect(told[7]?.data.data.jobs).toMatchObject([link]);
      await watcher.waitFor("audit", ({ data }) => data.action === "job_dlq_reprocess_success");
      expect(JSON.stringify(watcher.heard)).not.toMatch(/zanzibar/);
    });

    test("is told of tenants, breakers, triggers, webhooks and leaders as well", async () => {
      const watcher = await watch();
      const { millrace } = http;
      await millrace.tenants.pause("initech");
      await millrace.tenants.resume("initech");
      await makeBreaker("mail");
      await millrace.breakers.close("mail", "a test");
      const hook = { url: "https://example.com/", tenant_id: "acme" };
      const { id } = (await http.call("POST", "/api/webhooks", { body: hook })).body;
      for (const since of ["now()", "null"])
        await http.query(`update millrace.webhook set failing_since = ${since} where id = $1`, [
          id,
        ]);
      const name = newQueue();
      const trigger = { type: "TIME", name, job_type: "t", cron: "* * * * * *" };
      const made = (await http.call("POST", "/api/triggers", { body: trigger })).body;
      const ofTrigger = ({ data }: { data: { triggers: { name: string }[] } }) =>
        data.triggers[0]?.name === name;
      const other = await http.connect();
      const manager = await other.manage();
      const fired = await watcher.waitFor("trigger.fired", ofTrigger);
      expect(fired.data.data.triggers[0].job_id).toMatch(/^[0-9a-f-]{36}$/);
      await manager.stop();
      await http.query("update millrace.trigger set failures = failures + 1 where id = $1", [
        made.id,
      ]);
      await http.call("DELETE", `/api/triggers/${made.id}`);
      const failed = await watcher.waitFor("trigger.failed", ofTrigger);
      expect(failed.data.data).toMatchObject({ count: 1, triggers: [{ id: made.id }] });
      const kinds = watcher
        .kinds()
        .filter((kind) => !/^(?:counts|audit|open|trigger|queue)/.test(kind));
      expect(kinds.filter((kind) => kind !== "leader.changed")).toEqual([
        ...["tenant.paused", "tenant.resumed", "breaker.opened", "breaker.closed"],
        ...["webhook.failing", "webhook.recovered"],
      ]);
      const terms = watcher.heard.filter(({ event }) => event === "leader.changed");
      expect(terms.map(({ data }) => data.data.in_office)).toEqual([true, false]);
      expect(terms.map(({ data }) => data.tenant_id)).toEqual([null, null]);
    });

    test("of a thousand jobs that die in one statement is one, with ten of them by name", async () => {
      const watcher = await watch({ kinds: "job.dead" });
      const { id } = await makeQueue();
      await http.query(
        `insert into millrace.dead_job (id, created_at, finished_at, queue_id, claim_no, weight, attempt,
          max_attempts, crash_count, type, tenant, payload, error_class, error_fingerprint, error_message)
        select gen_random_uuid(), now(), now(), $1, 1, 5, 1, 1, 0, 't', 'many', '{}', 'retryable', 'f', 'secret words'
        from generate_series(1, 1000)`,
        [id],
      );
      const { data } = await watcher.waitFor("job.dead", ({ tenant_id }) => tenant_id === "many");
      expect([data.data.count, data.data.jobs.length]).toEqual([1_000, 10]);
      expect(JSON.stringify(data)).not.toContain("secret words");
    });

    test("that commits late is not skipped, neither by those who watch nor by those who come back", async () => {
      const [late, early, last] = [randomUUID(), randomUUID(), randomUUID()];
      const watcher = await watch({ kinds: "tenant.paused" });
      const before = watcher.lastId ?? "";
      const commit = await holdEvent(late);
      await http.millrace.tenants.pause(early);
      await watcher.waitFor("tenant.paused", ({ tenant_id }) => tenant_id === early);
      const between = watcher.lastId ?? "";
      await commit();
      await watcher.waitFor("tenant.paused", ({ tenant_id }) => tenant_id === late);
      await http.millrace.tenants.pause(last);
      await watcher.waitFor("tenant.paused", ({ tenant_id }) => tenant_id === last);
      const tenantsOf = ({ heard }: EventWatcher) =>
        heard.filter(({ event }) => event === "tenant.paused").map(({ data }) => data.tenant_id);
      for (const [lastEventId, wanted] of [
        [before, [early, late, last]],
        [between, [late, last]],
      ] as const) {
        const back = await watch({ kinds: "tenant.paused", lastEventId });
        await back.waitFor("tenant.paused", ({ tenant_id }) => tenant_id === last);
        expect(tenantsOf(back)).toEqual(wanted);
        back.close();
      }
      expect(tenantsOf(watcher)).toEqual([early, late, last]);
    });

    test("that was missed is told by another server, each once and in order", async () => {
      const first = await watch({ kinds: "tenant.paused" });
      const { lastId = "" } = first;
      first.close();
      const names = Array.from({ length: 30 }, () => randomUUID());
      for (const name of names.slice(0, 20)) await http.millrace.tenants.pause(name);
      const server = new HttpServer({ millrace: await http.connect(), port: 0, adminKey });
      await server.start();
      try {
        const options = { kinds: "tenant.paused", lastEventId: lastId, url: server.url };
        const second = await watch(options);
        for (const name of names.slice(20)) await http.millrace.tenants.pause(name);
        await second.waitFor("tenant.paused", ({ tenant_id }) => tenant_id === names.at(-1));
        const heard = second.heard.filter(({ event }) => event === "tenant.paused");
        expect(heard.map(({ data }) => data.tenant_id)).toEqual(names);
        const ids = heard.map(({ id }) => Number(id));
        expect(ids).toEqual([...ids].sort((a, b) => a - b));
        const stopped = server.stop();
        await until("the stream has ended", () => second.hasEnded);
        await stopped;
      } finally {
        await server.stop();
      }
    });

    test("is kept for a day; whoever comes later is told that there is a gap", async () => {
      const lost = randomUUID();
      await http.millrace.tenants.pause(lost);
      const watcher = await watch();
      const { lastId = "" } = watcher;
      await http.query("update millrace.event set at = at - interval '25 hours'");
      const upkeep = http.millrace.store.upkeep();
      await upkeep.tidy();
      await upkeep.close();
      expect(await http.query("select from millrace.event")).toEqual([]);
      await makeQueue();
      await watcher.waitFor("queue.created");
      for (const lastEventId of ["1", "999999999999999"]) {
        const late = await watch({ lastEventId });
        await late.waitFor("gap");
        late.close();
      }
      const onTime = await watch({ lastEventId: lastId });
      await onTime.waitFor("queue.created");
      expect(onTime.kinds()).not.toContain("gap");
    });
  });
}
