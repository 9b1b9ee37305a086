// Jobs are found by fields of their payloads that were declared as labels, wherever they are by now.

import { expect, test } from "vitest";
import { defineJob } from "../../src/index.ts";
import { useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue, refusal } from "../support/instance.ts";

export function labelsSuite(): void {
  const http = useHttp();
  const search = async (label: string, more = "", key?: string) => {
    const path = `/api/jobs?label=${encodeURIComponent(label)}${more}`;
    return (await http.call("GET", path, key === undefined ? {} : { key })).body;
  };
  const idsOf = ({ jobs }: { jobs: { id: string }[] }) => jobs.map(({ id }) => id).sort();
  const rowsOf = (id: string) =>
    http.query<{ name: string; value: string }>(
      "select name, value from millrace.job_label where job_id = $1 order by name",
      [id],
    );

  test("a type's labels are taken from texts, numbers and booleans of the payload, by path", async () => {
    const job = defineJob({
      type: "labelled",
      queue: newQueue(),
      labels: ["customer", "order.id", "paid", "missing", "order", "note", "empty"],
    });
    const note = "long ".repeat(100);
    const payload = { customer: 'ada:1, "x"', order: { id: 42 }, paid: false, note, empty: "" };
    const { id } = await http.millrace.enqueue(job, payload);
    const [customer, long, order, paid, ...others] = await rowsOf(id);
    expect(others).toEqual([]);
    expect([customer, order, paid].map((row) => [row?.name, row?.value])).toEqual([
      ["customer", payload.customer],
      ["order.id", "42"],
      ["paid", "false"],
    ]);
    expect(long?.value).toMatch(/^sha256:[0-9a-f]{64}$/);
    for (const label of [
      `customer:${payload.customer}`,
      "order.id:42",
      "paid:false",
      `note:${note}`,
    ])
      expect(idsOf(await search(label, `&type=${job.type}`)), label).toEqual([id]);
    expect(idsOf(await search("order.id:43"))).toEqual([]);
    for (const wrong of ["customer", ":x", "customer:"])
      expect((await http.call("GET", `/api/jobs?label=${wrong}`)).body.code).toBe(
        "REQUEST_INVALID",
      );
    const define = async (labels: unknown) => defineJob({ type: "t", labels } as never);
    for (const labels of [["a:b"], [""], Array(11).fill("x"), "x", [7]])
      expect((await refusal(define(labels))).code).toBe("OPTION_INVALID");
  });

  test("they are stored with the job or not at all: in a transaction, many at once, and once for a repeated key", async () => {
    const job = defineJob({ type: "labelled", queue: newQueue(), labels: ["n"] });
    const value = newQueue();
    const tx = { query: (text: string, values: unknown[]) => http.query(text, values) };
    const own = await http.millrace.enqueue(job, { n: value }, { tx });
    const key = newQueue();
    const first = await http.millrace.enqueue(job, { n: value }, { key });
    const again = await http.millrace.enqueue(job, { n: value }, { key });
    expect(again).toEqual({ id: first.id, existing: true });
    const many = await http.millrace.enqueueMany(
      job,
      [value, value, undefined].map((n) => ({ n })),
      { orderingKey: "lane" },
    );
    const expected = [own, first, ...many.slice(0, 2)].map(({ id }) => id);
    expect(idsOf(await search(`n:${value}`))).toEqual(expected.sort());
    const plain = await http.millrace.enqueue(defineJob({ type: "plain", queue: job.queue }), {
      n: value,
    });
    expect(await rowsOf(plain.id)).toEqual([]);
  });

  test("a job keeps them through its states, and hands them on when it is reprocessed", async () => {
    const value = newQueue();
    const made = { name: newQueue(), tenant_id: "acme" };
    const queue = (await http.call("POST", "/api/queues", { body: made })).body;
    const key = await http.key("robot", "acme");
    const producer = await http.key("producer", "acme");
    const post = async (more: object = {}) => {
      const body = { type: "t", queue: made.name, payload: { n: value }, labels: ["n"], ...more };
      return (await http.call("POST", "/api/jobs", { key: producer, body })).body.id as string;
    };
    const item = { queue_id: queue.id, payload: { n: value }, labels: ["n"] };
    const added = (await http.call("POST", "/api/queue-items", { key, body: item })).body.id;
    const dead = await http.call("GET", `/api/queue-items/next?queue_id=${queue.id}`, { key });
    expect(dead.body.id).toBe(added);
    const end = { status: "FAILED", token: dead.body.token, error_message: "no" };
    await http.call("PUT", `/api/queue-items/${added}`, { key, body: end });
    const cancelled = await post();
    await http.call("POST", `/api/jobs/${cancelled}/cancel`, { key: producer });
    const all = [added, cancelled, await post(), await post({ delay_ms: 3_600_000 })];
    const manager = await http.key("manager", "acme");
    const found = await search(`n:${value}`, "", manager);
    expect(idsOf(found)).toEqual([...all].sort());
    expect(new Set(found.jobs.map(({ state }: { state: string }) => state))).toEqual(
      new Set(["dead", "cancelled", "ready", "scheduled"]),
    );
    const retry = `/api/jobs/${added}/retry`;
    const again = await http.call("POST", retry, { key: manager, body: { notes: "again" } });
    expect(idsOf(await search(`n:${value}`, "&state=ready", manager))).toContain(
      again.body.new_job_id,
    );
    const globex = await http.key("manager", "globex");
    expect(idsOf(await search(`n:${value}`, "", globex))).toEqual([]);
    expect(idsOf(await search(`n:${value}`, "&tenant_id=acme"))).toHaveLength(5);
    const counts = (await http.call("GET", `/api/queues/${queue.id}/stats`)).body.counts;
    const total = Object.values<number>(counts).reduce((sum, count) => sum + count, 0);
    await http.call("DELETE", `/api/queues/${queue.id}?confirm_count=${total}`);
    expect(await http.query("select from millrace.job_label where value = $1", [value])).toEqual(
      [],
    );
  });

  test("pages go on past what one look into the index gives, without a gap or a repeat", async () => {
    const queue = newQueue();
    const labelled = defineJob({ type: "odd", queue, labels: ["n"] });
    const other = defineJob({ type: "even", queue, labels: ["n"] });
    const payloads = Array(1_000).fill({ n: queue });
    // The wanted ones are older than a look is deep.
    const wanted = await http.millrace.enqueueMany(labelled, payloads.slice(0, 30));
    await http.millrace.enqueueMany(other, payloads);
    await http.millrace.enqueueMany(other, payloads);
    const ids: string[] = [];
    for (let cursor = ""; ; ) {
      const page = await search(`n:${queue}`, `&type=odd&limit=20${cursor}`);
      ids.push(...page.jobs.map(({ id }: { id: string }) => id));
      if (page.next_cursor === null) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    expect(ids).toEqual(
      wanted
        .map(({ id }) => id)
        .sort()
        .reverse(),
    );
  });

  test("an erased tenant's are gone", async () => {
    const [tenant, value] = [newQueue(), newQueue()];
    const made = { name: newQueue(), tenant_id: tenant };
    const queue = (await http.call("POST", "/api/queues", { body: made })).body;
    const body = { type: "t", queue: made.name, tenant_id: tenant };
    const labelled = { ...body, payload: { n: value }, labels: ["n"] };
    const cancelled = (await http.call("POST", "/api/jobs", { body: labelled })).body.id;
    await http.call("POST", `/api/jobs/${cancelled}/cancel`);
    const dead = (await http.call("POST", "/api/jobs", { body: labelled })).body.id;
    expect(await dieOnce(http, await http.key("robot", tenant), queue.id)).toBe(dead);
    await http.call("POST", "/api/jobs", { body: labelled });
    expect(idsOf(await search(`n:${value}`, `&tenant_id=${tenant}`))).toHaveLength(3);
    const erase = `/api/tenants/${tenant}?confirm=${tenant}&notes=gdpr`;
    expect((await http.call("DELETE", erase)).status).toBe(200);
    expect(await http.query("select from millrace.job_label where tenant = $1", [tenant])).toEqual(
      [],
    );
  });
}
