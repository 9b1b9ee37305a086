// Security 18: a regular expression that backtracks would hang on one of these for hours; ours answer at once.

import { expect, test } from "vitest";
import { parseCron } from "../../src/domain/cron.ts";
import { describeError } from "../../src/domain/describe-error.ts";
import { inspect } from "../../src/domain/payload-shape.ts";
import { redisUrls } from "../../src/domain/redis-url.ts";
import { createWebhookRules, parseWebhookUrl } from "../../src/domain/webhook-url.ts";
import { isName } from "../../src/worker/job-definition.ts";

const size = 250_000;
const long = (part: string) => part.repeat(Math.ceil(size / part.length)).slice(0, size);

const corpus = [
  ...[
    "a",
    " ",
    "0",
    "=",
    "-",
    ".",
    "\n",
    "\\",
    "/",
    "@",
    "é",
    "A1",
    "a.",
    "4 ",
    "4-",
    " =",
    "\t\n",
  ],
  ...["eyJ", "eyJ.", "-----BEGIN ", "-----BEGIN PRIVATE KEY-----", "AKIA", "sk_live_", "ghp_"],
  ...[
    "Content-Type: ",
    "From: a\n",
    "<p>",
    "JVBERi0",
    "a:b@",
    "postgres://",
    "*/",
    "1-2,",
    "data:;",
    "password: ",
    "password = a1\n",
    "pw=\n",
    "PWD=",
    "=;PWD=abcd",
    "UID=a PWD=a",
    "numero",
    "otpauth://a?a=b&",
    "order 4000056655665556 ",
    "4000056655665556 ",
  ],
].map(long);

const outcomes: readonly [name: string, look: (text: string) => unknown][] = [
  ["values of payloads", (text) => inspect({ text, password: text })],
  ["keys of payloads", (text) => inspect({ [text.slice(0, 10_000)]: 1 })],
  ["ends that almost fit", (text) => inspect({ text: `${text}!`, more: `!${text}` })],
  ["errors", (text) => describeError("t", new Error(text), { class: "retryable" }).fingerprint],
  ["names", (text) => isName(text)],
  ["cron expressions", (text) => tried(() => parseCron(text))],
  ["URLs of webhooks", (text) => tried(() => parseWebhookUrl(text, createWebhookRules()))],
  ["URLs of Redis", (text) => tried(() => redisUrls(text))],
];

function tried(look: () => unknown): unknown {
  try {
    return look();
  } catch {
    return "refused";
  }
}

test("security 18: many problems deep inside a payload cost what finding them costs", () => {
  const key = long("4111 1111 1111 ");
  const leaves = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`p${i}_password`, "a"]));
  let payload: unknown = leaves;
  for (let level = 0; level < 60; level++) payload = { [key]: payload };
  const found = inspect(payload);
  expect(found).toHaveLength(100);
  for (const { path } of found) expect(path).toMatch(/^\$(\[masked\])+.*…/);
});

test.each(outcomes)(
  "security 18: %s are looked at in linear time, whatever they hold",
  (_, look) => {
    for (const text of corpus) expect(look(text)).not.toBeUndefined();
  },
);
