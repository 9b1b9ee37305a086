import { randomUUID } from "node:crypto";
import { expect, test } from "vitest";
import { useHttp } from "../support/http.ts";

export function breakersSuite(): void {
  const http = useHttp();
  const make = async () => {
    const name = `platform ${randomUUID()}`;
    await http.millrace.breakers.configure(name, { failureThreshold: 3 });
    return { name, path: `/api/breakers/${encodeURIComponent(name)}` };
  };

  test("a breaker is listed, read, opened, closed and reset, each with a reason in the audit trail", async () => {
    const { name, path } = await make();
    const read = (await http.call("GET", path)).body;
    expect(read).toMatchObject({ name, state: "CLOSED", failure_threshold: 3, cause: null });
    expect((await http.call("GET", "/api/breakers")).body.breakers).toContainEqual(read);
    const key = await http.key("manager");
    const change = async (verb: string) => {
      const body = { reason: `${verb} it` };
      return (await http.call("POST", `${path}/${verb}`, { key, body })).body;
    };
    const open = { state: "OPEN", openings: 1, retry_after_ms: null, cause: "manual" };
    expect(await change("open")).toMatchObject({ ...open, reason: "open it" });
    const refused = http.millrace.breaker(name).run(async () => 1);
    expect(await refused.catch(({ code }) => code)).toBe("BREAKER_OPEN");
    expect(await change("close")).toMatchObject({ state: "CLOSED", openings: 1 });
    expect(await change("reset")).toMatchObject({ state: "CLOSED", openings: 0 });
    const target = encodeURIComponent(name);
    const { entries } = (await http.call("GET", `/api/audit?target=${target}`)).body;
    expect(entries.map(({ action }: { action: string }) => action)).toEqual([
      ...["breaker_reset", "breaker_close", "breaker_open"],
    ]);
    for (const { actor, reason } of entries) {
      expect(actor).toMatch(/^key:/);
      expect(reason).toMatch(/ it$/);
    }
  });

  test("no change without a reason, and none of what is not there", async () => {
    const { path } = await make();
    for (const verb of ["open", "close", "reset"]) {
      for (const body of [{}, { reason: "  " }, undefined])
        expect((await http.call("POST", `${path}/${verb}`, { body })).status).toBe(400);
      const nowhere = `/api/breakers/${randomUUID()}/${verb}`;
      const answer = await http.call("POST", nowhere, { body: { reason: "x" } });
      expect([answer.status, answer.body.code]).toEqual([404, "BREAKER_NOT_FOUND"]);
    }
    expect((await http.call("GET", path)).body.state).toBe("CLOSED");
    expect((await http.call("GET", `/api/breakers/${randomUUID()}`)).status).toBe(404);
  });

  test("a tenant's key sees and moves none: they are everybody's", async () => {
    const { path } = await make();
    const key = await http.key("manager", "acme");
    const body = { reason: "mine" };
    const calls: [string, string, unknown?][] = [
      ["GET", "/api/breakers"],
      ["GET", path],
      ["GET", `/api/breakers/${randomUUID()}`],
      ...["open", "close", "reset"].map((verb): [string, string, unknown] => [
        ...(["POST", `${path}/${verb}`, body] as const),
      ]),
    ];
    for (const [method, where, what] of calls) {
      const answer = await http.call(method, where, { key, body: what });
      expect([answer.status, answer.body.code]).toEqual([403, "TENANT_FORBIDDEN"]);
    }
    expect((await http.call("GET", path)).body.state).toBe("CLOSED");
  });
}
