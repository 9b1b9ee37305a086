import pg from "pg";
import { describe, expect, test } from "vitest";
import { verifyAudit } from "../../src/client/audit.ts";
import { runCommand } from "../support/command-line.ts";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function auditSuite(): void {
  const http = useHttp();

  /** As somebody with the owner's rights, past the triggers that refuse; put back afterwards. */
  async function tampered<T>(sql: string, look: () => Promise<T>): Promise<T> {
    const client = new pg.Client({ connectionString: http.url });
    await client.connect();
    const both = ["millrace.audit", "millrace.audit_head"];
    try {
      for (const table of both)
        await client.query(`create table saved_${table.slice(9)} as table ${table}`);
      await client.query("set session_replication_role = replica");
      await client.query(sql);
      return await look();
    } finally {
      for (const table of both) {
        const saved = `saved_${table.slice(9)}`;
        await client.query(`delete from ${table}`);
        await client.query(`insert into ${table} overriding system value table ${saved}`);
        await client.query(`drop table ${saved}`);
      }
      await client.end();
    }
  }

  async function someEntries(): Promise<void> {
    for (let i = 0; i < 5; i++)
      await http.call("POST", "/api/queues", { body: { name: newQueue(), tenant_id: "acme" } });
  }

  describe("security 21: the audit trail", () => {
    test("refuses to be changed", async () => {
      await someEntries();
      for (const sql of [
        "update millrace.audit set actor = 'nobody' where no = 1",
        "delete from millrace.audit where no = 1",
        "truncate millrace.audit",
      ])
        await expect(http.query(sql)).rejects.toThrow("append-only");
    });

    test("is one chain, whoever writes at the same time", async () => {
      await Promise.all(
        Array.from({ length: 20 }, () =>
          http.call("POST", "/api/queues", { body: { name: newQueue() } }),
        ),
      );
      const { body } = await http.call("GET", "/api/audit/verify");
      expect(body).toMatchObject({ ok: true, broken_at: null, problem: null });
      expect(body.entries).toBeGreaterThanOrEqual(20);
      expect(body.head.no).toBe(body.entries);
    });

    test.each([
      ["a changed entry", "update millrace.audit set actor = 'nobody' where no = 3", 3],
      ["a changed time", "update millrace.audit set at = at + interval '1 us' where no = 2", 2],
      ["changed details", `update millrace.audit set details = '{"name":"x"}' where no = 4`, 4],
      ["a missing entry", "delete from millrace.audit where no = 2", 2],
      [
        "two entries that changed places",
        "update millrace.audit set no = case no when 2 then -3 else -2 end where no in (2, 3); update millrace.audit set no = -no where no < 0",
        2,
      ],
      [
        "a missing end",
        "delete from millrace.audit where no = (select max(no) from millrace.audit)",
        null,
      ],
      ["an emptied trail", "delete from millrace.audit", 1],
    ] as const)("tells of %s", async (_, sql, brokenAt) => {
      await someEntries();
      const found = await tampered(
        sql,
        async () => (await http.call("GET", "/api/audit/verify")).body,
      );
      expect(found.ok).toBe(false);
      if (brokenAt !== null) expect(found.broken_at).toBe(brokenAt);
      expect((await http.call("GET", "/api/audit/verify")).body.ok).toBe(true);
    });

    test("cut off together with its head is told by whoever kept an older head", async () => {
      await someEntries();
      const { audit } = http.millrace.store.service;
      const head = await audit.head();
      const cut = `delete from millrace.audit where no > ${head.no - 2};
      update millrace.audit_head h set no = a.no, hash = a.hash from millrace.audit a where a.no = ${head.no - 2}`;
      const [alone, kept] = await tampered(cut, async () =>
        Promise.all([verifyAudit(audit), verifyAudit(audit, head)]),
      );
      expect(alone.ok).toBe(true);
      expect(kept).toMatchObject({ ok: false, problem: "the expected head is missing" });
      expect(await verifyAudit(audit, head)).toMatchObject({ ok: true });
    });

    test("is verified by a command, which fails when it is broken", async () => {
      await someEntries();
      const env = { DATABASE_URL: http.url };
      const whole = await runCommand(["audit", "verify"], env);
      expect([whole.code, whole.err]).toEqual([0, ""]);
      const [, head = ""] = /^Whole: \d+ entries, head (\d+:[0-9a-f]{64})\n$/.exec(whole.out) ?? [];
      const json = await runCommand(["audit", "verify", "--json", "--expect", head], env);
      expect(JSON.parse(json.out)).toMatchObject({ ok: true, broken_at: null });
      const broken = await tampered("update millrace.audit set target = '?' where no = 2", () =>
        runCommand(["audit", "verify"], env),
      );
      expect([broken.code, broken.err]).toEqual([1, "Broken at entry 2: the entry was changed.\n"]);
      expect((await runCommand(["audit", "verify", "--expect", "x"], env)).code).toBe(2);
    });

    test("is read page by page, a tenant's own only by the tenant's people", async () => {
      await someEntries();
      const key = await http.key("manager", "acme");
      const seen: number[] = [];
      for (let cursor = ""; ; ) {
        const { body } = await http.call("GET", `/api/audit?limit=4${cursor}`, { key });
        for (const entry of body.entries) expect(entry.tenant_id).toBe("acme");
        seen.push(...body.entries.map(({ no }: { no: number }) => no));
        if (body.next_cursor === null) break;
        cursor = `&cursor=${body.next_cursor}`;
      }
      expect(seen).toEqual([...new Set(seen)].sort((a, b) => b - a));
      expect(seen.length).toBeGreaterThanOrEqual(5);
      const admin = await http.key("admin", "acme");
      const answer = await http.call("GET", "/api/audit/verify", { key: admin });
      expect([answer.status, answer.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
    });
  });
}
