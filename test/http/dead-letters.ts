import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { useHttp } from "../support/http.ts";
import { dieOnce } from "../support/http-world.ts";
import { newQueue } from "../support/instance.ts";

export function deadLettersSuite(): void {
  const http = useHttp();
  const path = "/api/jobs/admin/dlq";
  let robot = "";
  let manager = "";
  beforeAll(async () => {
    robot = await http.key("robot", "acme");
    manager = await http.key("manager", "acme");
  });

  async function queue(more: object = {}): Promise<number> {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    return (await http.call("POST", "/api/queues", { body })).body.id;
  }
  const call = (method: string, end: string, body?: unknown) =>
    http.call(method, path + end, { key: manager, ...(body === undefined ? {} : { body }) });

  describe("dead letters", () => {
    test("are listed with exactly these fields, the newest first, page by page", async () => {
      const id = await queue();
      const letters: string[] = [];
      for (let n = 0; n < 5; n++)
        letters.push(await dieOnce(http, robot, id, { payload: { n }, message: `broke ${n}` }));
      const first = await call("GET", `?queue_id=${id}&limit=3`);
      expect(Object.keys(first.body)).toEqual(["dlq_items", "total_count", "next_cursor"]);
      expect(first.body.total_count).toBe(5);
      expect(first.body.dlq_items[0]).toMatchObject({
        dlq_id: letters[4],
        category: null,
        job_type: "item",
        status: "pending_review",
        idempotency_key: letters[4],
        correlation_id: letters[4],
        error_class: "retryable",
        error_message: "broke 4",
        attempt_count: 1,
        original_created_at: expect.any(String),
        created_at: expect.any(String),
      });
      const cursor = `&cursor=${first.body.next_cursor}`;
      const second = await call("GET", `?queue_id=${id}&limit=3${cursor}`);
      expect(second.body.next_cursor).toBe(null);
      const shown = [...first.body.dlq_items, ...second.body.dlq_items];
      expect(shown.map(({ dlq_id }) => dlq_id)).toEqual([...letters].reverse());
      const fingerprint = shown[0].error_fingerprint;
      const alike = await call("GET", `?error_fingerprint=${fingerprint}`);
      expect(alike.body.total_count).toBe(5);
      expect((await call("GET", "?error_fingerprint=other")).body.total_count).toBe(0);
      expect((await call("GET", `?queue_id=${id}&error_class=transient`)).body.total_count).toBe(0);
    });

    test("are read with their payload, and reading is noted", async () => {
      const letter = await dieOnce(http, robot, await queue(), { payload: { big: [1, 2, 3] } });
      const { body } = await call("GET", `/${letter}`);
      expect(body).toMatchObject({ id: letter, payload: { big: [1, 2, 3] }, state: "dead" });
      const audit = `/api/audit?target=${letter}`;
      const { entries } = (await http.call("GET", audit, { key: manager })).body;
      expect(entries).toMatchObject([{ action: "job_dlq_read", target: letter }]);
      expect((await call("GET", `/${randomUUID()}`)).body.code).toBe("DEAD_LETTER_NOT_FOUND");
    });

    test("are reprocessed as a new linked job with the old payload, a derived key and both audit entries", async () => {
      const letter = await dieOnce(http, robot, await queue(), { payload: { keep: "me" } });
      expect((await call("POST", `/${letter}/reprocess`, {})).status).toBe(400);
      const made = await call("POST", `/${letter}/reprocess`, { notes: "the bank is back" });
      expect(made.status).toBe(201);
      expect(made.body).toEqual({
        message: expect.any(String),
        dlq_id: letter,
        new_job_id: expect.any(String),
        new_idempotency_key: expect.stringMatching(new RegExp(`^${letter}_retry_\\d{10}$`)),
      });
      const fresh = await http.call(
        "GET",
        `/api/jobs/${made.body.new_job_id}?include_payload=true`,
      );
      expect(fresh.body).toMatchObject({
        payload: { keep: "me" },
        reprocess_of: letter,
        idempotency_key: made.body.new_idempotency_key,
        tenant_id: "acme",
      });
      const audit = `/api/audit?target=${letter}`;
      const { entries } = (await http.call("GET", audit, { key: manager })).body;
      expect(entries.map(({ action }: { action: string }) => action)).toEqual([
        "job_dlq_reprocess_success",
        "job_dlq_reprocess_requested",
      ]);
      expect(entries[0]).toMatchObject({
        reason: "the bank is back",
        details: { new_job_id: made.body.new_job_id },
      });
      const again = await call("POST", `/${letter}/reprocess`, { notes: "again" });
      expect([again.status, again.body.code]).toEqual([409, "ILLEGAL_TRANSITION"]);
      const listed = await call("GET", "?status=reprocessed&limit=200");
      expect(listed.body.dlq_items).toContainEqual(
        expect.objectContaining({ dlq_id: letter, new_job_id: made.body.new_job_id }),
      );
    });

    test("are discarded with notes, once", async () => {
      const letter = await dieOnce(http, robot, await queue());
      const { body } = await call("POST", `/${letter}/discard`, { notes: "a test order" });
      expect(body.dlq_id).toBe(letter);
      expect((await call("POST", `/${letter}/discard`, { notes: "again" })).status).toBe(409);
      const listed = (await call("GET", "?status=discarded&limit=200")).body.dlq_items;
      expect(listed).toContainEqual(
        expect.objectContaining({ dlq_id: letter, notes: "a test order" }),
      );
    });

    test("are repaired all at once where their count was confirmed", async () => {
      const id = await queue();
      for (let n = 0; n < 4; n++) await dieOnce(http, robot, id);
      const filter = { queue_id: id };
      const wrong = await call("POST", "/reprocess", { notes: "all", filter, confirm_count: 3 });
      expect([wrong.status, wrong.body.details]).toEqual([409, { count: 4 }]);
      expect((await call("GET", `?queue_id=${id}&status=pending_review`)).body.total_count).toBe(4);
      const done = await call("POST", "/reprocess", { notes: "all", filter, confirm_count: 4 });
      expect(done.body.reprocessed).toHaveLength(4);
      expect((await call("GET", `?queue_id=${id}&status=pending_review`)).body.total_count).toBe(0);
      const other = await queue();
      for (let n = 0; n < 2; n++) await dieOnce(http, robot, other);
      const closing = { notes: "all", filter: { queue_id: other }, confirm_count: 2 };
      expect((await call("POST", "/discard", closing)).body.discarded).toHaveLength(2);
    });

    test("add up", async () => {
      const key = await http.key("robot", "sums");
      const body = { name: newQueue(), tenant_id: "sums" };
      const { id } = (await http.call("POST", "/api/queues", { body })).body;
      const [first = ""] = [
        await dieOnce(http, key, id, { message: "broke 1" }),
        await dieOnce(http, key, id, { message: "broke 2" }),
        await dieOnce(http, key, id, { message: "gone" }),
      ];
      await http.call("POST", `${path}/${first}/discard`, { body: { notes: "x" } });
      const sums = await http.call("GET", `${path}/statistics?tenant_id=sums`);
      expect(sums.body).toMatchObject({
        by_status: { pending_review: 2, discarded: 1 },
        by_error_class: { retryable: 2 },
        by_category: { "": 2 },
        by_queue: { [body.name]: 2 },
        last_day: 3,
      });
      expect(sums.body.top_fingerprints).toHaveLength(2);
      expect(sums.body.oldest_pending_seconds).toBeGreaterThanOrEqual(0);
    });

    test("are tallied as counting them one by one would", async () => {
      const differing = await http.query(`with tallied as (
          select tenant, queue_id, status, error_class, category, fingerprint, sum(letters) as letters
          from millrace.dead_letter_tally group by 1, 2, 3, 4, 5, 6 having sum(letters) <> 0
        ), counted as (
          select tenant, queue_id, case when state = 'discarded' then 'discarded'
              when reprocessed_as is not null then 'reprocessed' else 'pending_review' end,
            error_class, coalesce(meta->>'category', ''), error_fingerprint, count(*)
          from millrace.dead_job group by 1, 2, 3, 4, 5, 6
        )
        (table tallied except table counted) union all (table counted except table tallied)`);
      expect(differing).toEqual([]);
    });
  });
}
