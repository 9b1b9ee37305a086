// What other sites can make a signed-in browser send: nothing that counts.

import { describe, expect, test } from "vitest";
import { useHttp } from "../support/http.ts";

export function forgerySuite(): void {
  const http = useHttp();
  const path = "/api/session";
  const newKey = () => http.key("manager");
  const signIn = (body: unknown, headers = {}) =>
    http.call("POST", path, { key: null, body, headers });
  const whoAmI = (cookie: string) => http.call("GET", path, { key: null, headers: { cookie } });

  describe("security 10: forged requests", () => {
    test("with the cookie are refused unless our own page sends them", async () => {
      const { cookie } = (await http.signIn(await newKey())).headers;
      const { host } = new URL(http.baseUrl);
      const create = (headers: Record<string, string>) =>
        http.call("POST", "/api/jobs", { key: null, body: { type: "t" }, headers });
      const foreign: Record<string, string>[] = [
        {},
        { "sec-fetch-site": "cross-site" },
        { "sec-fetch-site": "same-site" },
        { "sec-fetch-site": "none" },
        { "sec-fetch-site": "cross-site", origin: `http://${host}` },
        { origin: "https://evil.example" },
        { origin: "null" },
        { origin: `http://${host}.evil.example` },
      ];
      const before = await http.query("select from millrace.job");
      for (const headers of foreign) {
        const answer = await create({ cookie, ...headers });
        const told = [answer.status, answer.body.code, JSON.stringify(headers)];
        expect(told).toEqual([403, "CROSS_SITE_REFUSED", JSON.stringify(headers)]);
        const out = await http.call("DELETE", path, { key: null, headers: { cookie, ...headers } });
        expect(out.body.code).toBe("CROSS_SITE_REFUSED");
      }
      expect(await http.query("select from millrace.job")).toEqual(before);
      expect((await create({ cookie, origin: `http://${host}` })).status).toBe(201);
      expect((await create({ cookie, "sec-fetch-site": "same-origin" })).status).toBe(201);
      expect((await whoAmI(cookie)).status).toBe(200);
    });

    test("that are not JSON are refused, with and without a body", async () => {
      const { headers } = await http.signIn(await newKey());
      const types = ["text/plain", "application/x-www-form-urlencoded", "application/jsonp"];
      for (const type of types)
        for (const body of ["{}", undefined]) {
          const options = { key: null, body, headers: { ...headers, "content-type": type } };
          const answer = await http.call("POST", "/api/queues/1/pause", options);
          expect([answer.status, answer.body.code]).toEqual([415, "MEDIA_TYPE_UNSUPPORTED"]);
          const out = await http.call("DELETE", path, options);
          expect(out.status).toBe(415);
        }
    });

    test("cannot sign a visitor in as somebody else", async () => {
      const key = await newKey();
      for (const headers of [{ "sec-fetch-site": "cross-site" }, { origin: "https://evil.test" }]) {
        const answer = await signIn({ key }, headers);
        expect([answer.status, answer.body.code]).toEqual([403, "CROSS_SITE_REFUSED"]);
        expect(answer.headers.get("set-cookie")).toBe(null);
      }
      expect((await signIn({ key }, { "sec-fetch-site": "same-origin" })).status).toBe(200);
    });
  });
}
