// Rules 6 and 20: what is secret about a webhook stays so. Rule 19: HTTPS, end to end.

import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { defineJob, type EventName, type Millrace } from "../../src/index.ts";
import { createLog, type Log } from "../../src/runtime/log.ts";
import { createCertificate } from "../support/certificate.ts";
import { newQueue, refusal, useMillrace } from "../support/instance.ts";
import { NotifierProcess } from "../support/notifier-process.ts";
import { Receiver, status } from "../support/receiver.ts";
import { until } from "../support/until.ts";

const webhooks = { allowInsecureLoopback: true };
const instances = useMillrace({ webhooks });
const token = "a-token-in-the-path";
const stops: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const stop of stops.splice(0)) await stop();
  for (const { id } of await instances.millrace.webhooks.list())
    await instances.millrace.webhooks.delete(id);
});

async function startReceiver(tls?: ReturnType<typeof createCertificate>): Promise<Receiver> {
  const receiver = await Receiver.start(tls);
  stops.push(() => receiver.close());
  return receiver;
}

/** Everything that a log at its most talkative would hold. */
function listeningLog(): { log: Log; text: () => string } {
  const lines: string[] = [];
  const write = (...parts: unknown[]) => void lines.push(JSON.stringify(parts));
  const log = { ...createLog("silent"), debug: write, info: write, warn: write, error: write };
  const listening = Object.assign(log, { child: () => listening }) as Log;
  return { log: listening, text: () => lines.join("\n") };
}

async function everythingStored(): Promise<string> {
  const tables = await instances.query<{ name: string }>(
    "select c.oid::regclass::text as name from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition",
  );
  const rows = await Promise.all(
    tables.map(({ name }) => instances.query(`select t::text from ${name} t`)),
  );
  return JSON.stringify(rows);
}

it("rule 6: a secret has 256 random bits, is shown once, and only its SHA-256 is stored", async () => {
  const { millrace } = instances;
  const url = "https://example.com/";
  const made = await millrace.webhooks.create({ url });
  const rotated = await millrace.webhooks.rotateSecret(made.id);
  expect(made.secret).toMatch(/^whsec_[0-9a-f]{64}$/);
  expect(rotated.secret).not.toBe(made.secret);
  const shown = [await millrace.webhooks.list(), await millrace.webhooks.update(made.id, { url })];
  const hash = (secret: string) => createHash("sha256").update(secret).digest("hex");
  const stored = await everythingStored();
  for (const secret of [made.secret, rotated.secret]) {
    expect(JSON.stringify(shown)).not.toContain(secret);
    expect(JSON.stringify(shown)).not.toContain(hash(secret));
    expect(stored).not.toContain(secret);
    expect(stored).toContain(hash(secret));
  }
});

it("rule 20: neither secret nor URL is in events, logs, errors, jobs or the audit trail", async () => {
  const { log, text } = listeningLog();
  const millrace = await instances.connect({ log, logLevel: "trace" });
  const told: string[] = [];
  const names: EventName[] = ["webhook.delivered", "webhook.delivery_failed", "webhook.failing"];
  for (const name of [...names, "job.settled" as const, "service.failed" as const])
    millrace.events.on(name, (event) => told.push(JSON.stringify(event)));
  const receiver = await startReceiver();
  receiver.answer = status(500);
  const url = `${receiver.url}/${token}`;
  const { id, secret } = await millrace.webhooks.create({ url });
  receiver.secrets = [secret];
  await millrace.notifications.start({ failingAfter: 1 });
  const failed = await millrace.waitFor((await millrace.webhooks.test(id)).id);
  receiver.answer = status(200);
  await millrace.result((await millrace.webhooks.test(id)).id);
  await millrace.stop();
  expect(text()).toContain("webhook.failing");
  expect(told.length).toBeGreaterThan(3);
  const audit = await instances.query("select * from millrace.audit where target = $1", [id]);
  const key = createHash("sha256").update(secret).digest("hex");
  for (const said of [text(), told.join(), JSON.stringify(failed), JSON.stringify(audit)])
    for (const secretText of [secret, key, token]) expect(said).not.toContain(secretText);
});

it("security 19: a refused address and a silent one look the same to the owner of a webhook", async () => {
  const { millrace } = instances;
  const strict = await instances.connect({ webhooks: {} });
  const receiver = await startReceiver();
  const reasons: string[] = [];
  for (const instance of [strict, millrace])
    instance.events.on("webhook.delivery_failed", ({ reason }) => reasons.push(reason));
  const errorOf = async (teller: Millrace, url: string) => {
    const { id } = await millrace.webhooks.create({ url });
    await teller.notifications.start();
    const job = await millrace.waitFor((await millrace.webhooks.test(id)).id);
    await teller.notifications.stop();
    return job.error?.message;
  };
  // A name that leads to this machine, which the strict one may not connect to.
  const refused = await errorOf(strict, "https://localhost:8443/");
  await receiver.close();
  stops.length = 0;
  const silent = await errorOf(millrace, receiver.url);
  expect(reasons).toEqual(["address_refused", "unreachable"]);
  expect(refused).toBe(silent);
});

it("security 19: an instance without the option refuses plain HTTP and loopback, also when stored", async () => {
  const strict = await instances.connect({ webhooks: {} });
  const receiver = await startReceiver();
  const creating = strict.webhooks.create({ url: receiver.url });
  expect((await refusal(creating)).code).toBe("WEBHOOK_URL_REFUSED");
  const { id } = await instances.millrace.webhooks.create({ url: receiver.url });
  const changing = strict.webhooks.update(id, { url: receiver.url });
  expect((await refusal(changing)).code).toBe("WEBHOOK_URL_REFUSED");
  await strict.notifications.start();
  const job = await strict.waitFor((await strict.webhooks.test(id)).id);
  expect(job).toMatchObject({
    state: "dead",
    error: { message: "The webhook's URL is not allowed." },
  });
  expect(receiver.received.length + receiver.refused.length).toBe(0);
});

it("security 19: HTTPS delivers to a receiver whose certificate is vouched for, and to no other", async () => {
  const certificate = createCertificate();
  const receiver = await startReceiver(certificate);
  const folder = mkdtempSync(join(tmpdir(), "millrace-certificate-"));
  stops.push(async () => rmSync(folder, { recursive: true }));
  const file = join(folder, "authority.pem");
  writeFileSync(file, certificate.cert);
  const { id, secret } = await instances.millrace.webhooks.create({ url: receiver.url });
  receiver.secrets = [secret];
  const tell = async (env: Record<string, string>) => {
    const connect = { databaseUrl: instances.url, migrate: false, webhooks };
    const process = new NotifierProcess({ connect }, env);
    await process.says("ready");
    const { id: job } = await instances.millrace.webhooks.test(id);
    const ended = await instances.millrace.waitFor(job);
    await process.kill();
    return ended;
  };
  const refused = await tell({});
  expect(refused.error?.message).toBe("The receiver's certificate or TLS was refused.");
  expect(receiver.received).toEqual([]);
  const accepted = await tell({ NODE_EXTRA_CA_CERTS: file });
  expect(accepted.result).toEqual({ delivered: true, status: 204 });
  expect(receiver.received).toHaveLength(1);
});

it("rule 20: a secret in a handler's error does not leave the house", async () => {
  const { millrace } = instances;
  const receiver = await startReceiver();
  receiver.secrets = [(await millrace.webhooks.create({ url: receiver.url })).secret];
  const leaking = defineJob({
    type: "leaks",
    queue: newQueue(),
    maxAttempts: 1,
    run: () => {
      throw new Error(`refused: Bearer ${"b2".repeat(20)}`);
    },
  });
  await millrace.notifications.start();
  stops.push(() => millrace.notifications.stop());
  await instances.work([leaking]);
  await millrace.enqueue(leaking, {});
  const [received] = await until(
    "it is told",
    () => receiver.received.length > 0 && receiver.received,
  );
  expect(received?.told.data.error).toMatchObject({ message: expect.stringContaining("withheld") });
  expect(received?.body).not.toContain("b2b2");
});
