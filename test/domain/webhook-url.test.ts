// Rule 19 of what must be tested for security, as far as a URL alone shows it.

import { describe, expect, it } from "vitest";
import {
  connectionProblem,
  createWebhookRules,
  parseWebhookUrl,
} from "../../src/domain/webhook-url.ts";

const usual = createWebhookRules();
const refused = expect.objectContaining({ code: "WEBHOOK_URL_REFUSED" });
const judge = (url: unknown, rules = usual) => {
  try {
    return parseWebhookUrl(url, rules).href;
  } catch (error) {
    return error;
  }
};

describe("a webhook's URL", () => {
  it.each([
    "https://example.com/hook",
    "https://example.com:8443/hook?x=1",
    "https://8.8.8.8/",
    "https://[2606:4700:4700::1111]/",
  ])("may be %s", (url) => expect(judge(url)).toBe(url));

  it.each([
    ["http", "http://example.com/"],
    ["ftp", "ftp://example.com/"],
    ["file", "file:///etc/passwd"],
    ["javascript", "javascript:alert(1)"],
    ["data", "data:text/plain,x"],
  ])("must be https: %s is refused", (_, url) => expect(judge(url)).toEqual(refused));

  it.each([
    "https://user@example.com/",
    "https://user:word@example.com/",
    "https://:word@a.example/",
  ])("must not hold a user or a password: %s is refused", (url) =>
    expect(judge(url)).toEqual(refused),
  );

  it.each(["https://example.com:22/", "https://example.com:6379/", "https://example.com:80/"])(
    "must have an allowed port: %s is refused",
    (url) => expect(judge(url)).toEqual(refused),
  );

  it.each([
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://10.0.0.1/",
    "https://192.168.1.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://0.0.0.0/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[fe80::1]/",
    "https://[fd00::1]/",
    "https://[64:ff9b::169.254.169.254]/",
    "https://①②⑦.0.0.1/",
  ])("must not be an internal address, however it is spelt: %s is refused", (url) =>
    expect(judge(url)).toEqual(refused),
  );

  it.each([
    [""],
    ["example.com"],
    ["https://"],
    [null],
    [42],
    [`https://a.example/${"x".repeat(2_000)}`],
  ])("must be a URL of bounded length: %s is refused", (url) =>
    expect(judge(url)).toEqual(refused),
  );

  it("is not repeated in what it is refused with", () => {
    const error = judge("http://user:hunter2@example.com/?token=abc");
    expect(String(error)).not.toMatch(/hunter2|abc|example/);
  });
});

describe("what the operator allows", () => {
  it("is a network, still over https", () => {
    const rules = createWebhookRules({ allowedNetworks: ["10.1.0.0/16", "fd00::/8"] });
    expect(judge("https://10.1.2.3/", rules)).toBe("https://10.1.2.3/");
    expect(judge("https://[fd00::1]/", rules)).toBe("https://[fd00::1]/");
    expect(judge("https://10.2.0.1/", rules)).toEqual(refused);
    expect(judge("https://127.0.0.1/", rules)).toEqual(refused);
    expect(judge("http://10.1.2.3/", rules)).toEqual(refused);
  });

  it("is a port, beside the usual ones", () => {
    const rules = createWebhookRules({ allowedPorts: [9443] });
    expect(judge("https://example.com:9443/", rules)).toBe("https://example.com:9443/");
    expect(judge("https://example.com:8443/", rules)).toBe("https://example.com:8443/");
    expect(judge("https://example.com:9444/", rules)).toEqual(refused);
  });

  it("is plain HTTP on loopback, and nowhere else", () => {
    const rules = createWebhookRules({ allowInsecureLoopback: true });
    expect(judge("http://127.0.0.1:3000/", rules)).toBe("http://127.0.0.1:3000/");
    expect(judge("http://[::1]:3000/", rules)).toBe("http://[::1]:3000/");
    expect(judge("http://8.8.8.8/", rules)).toEqual(refused);
    expect(judge("http://10.0.0.1/", rules)).toEqual(refused);
    expect(judge("https://10.0.0.1/", rules)).toEqual(refused);
    const name = new URL("http://somewhere.example:3000/");
    expect(connectionProblem(name, "127.0.0.1", rules)).toBeNull();
    expect(connectionProblem(name, "8.8.8.8", rules)).not.toBeNull();
    const odd = new URL("https://somewhere.example:3000/");
    expect(connectionProblem(odd, "8.8.8.8", rules)).not.toBeNull();
  });

  it.each([
    { allowedNetworks: ["10.0.0.0"] },
    { allowedNetworks: ["everything"] },
    { allowedPorts: [0] },
    { allowedPorts: [1.5] },
    { allowInsecureLoopback: "yes" as unknown as boolean },
  ])("is refused when it makes no sense: %o", (options) =>
    expect(() => createWebhookRules(options)).toThrow(
      expect.objectContaining({ code: "OPTION_INVALID" }),
    ),
  );
});

it.each([null, "x", 5, { nonsense: 1 }, { allowedNetworks: null }, { allowedPorts: 443 }])(
  "refuses rules that are none: %j",
  (rules) => {
    expect(() => createWebhookRules(rules as never)).toThrow(/^webhooks/);
  },
);
