import pg from "pg";
import { afterEach, describe, expect, test } from "vitest";
import { defineJob, NonRetryableError } from "../../src/index.ts";
import { createTestMillrace, type TestMillrace } from "../../src/testing.ts";

const opened: TestMillrace[] = [];

async function open(): Promise<TestMillrace> {
  const made = await createTestMillrace();
  opened.push(made);
  return made;
}

afterEach(async () => {
  await Promise.all(opened.splice(0).map((made) => made.stop()));
});

const quick = defineJob({ type: "quick", queue: "work", run: () => "done" });

describe("what was enqueued", () => {
  const invite = defineJob({ type: "invite", queue: "mail", priority: "high", run: () => null });

  async function withInvites() {
    const made = await open();
    const { millrace } = made;
    await millrace.enqueue(invite, { to: "ada", list: [{ n: 1, m: 2 }] }, { key: "ada-1" });
    await millrace.enqueue(invite, { to: "bob", at: null }, { delayMs: 5_000, tenant: "acme" });
    return made;
  }

  test("is found by payload, queue, tenant, key, priority, delay, state and count", async () => {
    const { assertEnqueued, assertNotEnqueued, enqueued } = await withInvites();
    const ada = await assertEnqueued(invite, {
      payload: { to: "ada", list: [{ n: 1 }] },
      queue: "mail",
      key: "ada-1",
      priority: "high",
      delayMs: 0,
      state: "ready",
    });
    expect(ada.payload).toMatchObject({ to: "ada" });
    await assertEnqueued("invite", {
      payload: { at: null },
      tenant: "acme",
      delayMs: 5_000,
    });
    await assertEnqueued(invite, { payload: (payload) => JSON.stringify(payload).includes("bob") });
    await assertEnqueued(invite, { count: 2 });
    await assertNotEnqueued("invite", { payload: { to: "eve" } });
    await assertNotEnqueued(quick);
    expect(await enqueued(invite, { tenant: "acme" })).toHaveLength(1);
  });

  test("is still known, with its delay, after it has run", async () => {
    const { drain, assertEnqueued } = await withInvites();
    await drain([invite], { advance: true });
    await assertEnqueued(invite, { delayMs: 5_000, state: "completed", count: 1 });
  });

  test("an assertion that fails says why", async () => {
    const { assertEnqueued } = await withInvites();
    const cases: [object, string][] = [
      [{ payload: { to: "eve" } }, 'payload.to is "ada", not "eve"'],
      [{ payload: { list: [{ n: 2 }] } }, "payload.list[0].n is 1, not 2"],
      [{ payload: { list: [] } }, "payload.list has 1 elements, not 0"],
      [{ payload: { more: 1 } }, "payload.more is absent, not 1"],
      [{ payload: () => false }, "the payload is not what the function wants"],
      [{ queue: "post" }, 'queue is "mail", not "post"'],
      [{ key: "x" }, 'key is "ada-1", not "x"'],
      [{ priority: "low" }, "priority is high, not low"],
      [{ delayMs: 7 }, "delayMs is 5000, not 7"],
      [{ count: 3 }, "Expected exactly 3 jobs"],
    ];
    for (const [match, message] of cases) {
      const error: Error = await assertEnqueued("invite", match).then(
        () => expect.fail(`${JSON.stringify(match)} should not match`),
        (thrown) => thrown,
      );
      expect(error).toMatchObject({ code: "ERR_ASSERTION", name: "AssertionError" });
      expect(error.message).toContain(message);
    }
  });

  test("assertNotEnqueued lists what is there, assertEnqueued which other types are", async () => {
    const { assertEnqueued, assertNotEnqueued } = await withInvites();
    await expect(assertNotEnqueued(invite, { tenant: "acme" })).rejects.toThrow(
      'Expected no job of type "invite" with tenant "acme" to have been enqueued, but there is 1:',
    );
    await expect(assertEnqueued("unheard.of")).rejects.toThrow("Other types: invite");
  });

  test("leaves out what was rolled back and shows what was committed", async () => {
    const { millrace, assertEnqueued, assertNotEnqueued } = await open();
    const tx = new pg.Client({ connectionString: millrace.databaseUrl });
    await tx.connect();
    await tx.query("begin");
    await millrace.enqueue(quick, {}, { tx });
    await tx.query("rollback");
    await assertNotEnqueued(quick);
    await tx.query("begin");
    await millrace.enqueue(quick, {}, { tx });
    await tx.query("commit");
    await assertEnqueued(quick, { count: 1 });
    await tx.end();
  });

  test("a dead letter that is reprocessed is a new job", async () => {
    const { millrace, drain, assertEnqueued } = await open();
    const dies = defineJob({
      type: "dies",
      run() {
        throw new NonRetryableError("no");
      },
    });
    const { id } = await millrace.enqueue(dies, {});
    await drain([dies]);
    await millrace.reprocess(id, "try again");
    await assertEnqueued(dies, { count: 2 });
    await assertEnqueued(dies, { state: "ready", count: 1 });
  });
});
