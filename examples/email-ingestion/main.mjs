// Governed e-mail ingestion: what may be in a payload, what an error means, and how an operator repairs
// what failed, with a reason and a trail.
import { randomUUID } from "node:crypto";
import { createEnvelope, defineJob, Millrace } from "millrace";
import { HttpClient } from "millrace/client";
import { HttpServer } from "millrace/http";
import { ownDatabase } from "../own-database.mjs";
import { createProvider } from "./mailboxes.mjs";

const run = Date.now();
const tenantId = `acme-${run}`;
const provider = createProvider();
const say = (text) => console.log(text);

// Types of the category `ingestion`: without tenant, correlation, key and connection they are refused.
const fetchMail = defineJob({
  type: "email_ingestion_fetch",
  queue: `ingestion-${run}`,
  retry: { baseMs: { transient: 100 } },
  async run({ payload, attempt }) {
    const { connection_id, correlation_id } = payload;
    const messages = await provider.newMessages(connection_id);
    for (const message_id of messages) {
      const references = { connection_id, message_id };
      await millrace.enqueue(
        parseMail,
        envelope(references, `parse-${message_id}`, correlation_id),
      );
    }
    say(`  ${connection_id}: ${messages.length} messages at attempt ${attempt}`);
    return { messages: messages.length };
  },
});
const parseMail = defineJob({
  type: "email_ingestion_parse",
  queue: `parsing-${run}`,
  additionalRequired: ["message_id"],
  run: ({ payload }) => ({ parsed: payload.message_id }),
});

/** Ids only: handlers load what they stand for. */
function envelope(references, name, correlationId) {
  return createEnvelope({
    ...{ category: "ingestion", tenantId, references, idempotencyKey: `${name}-${run}` },
    ...(correlationId === undefined ? {} : { correlationId }),
    newId: randomUUID,
  });
}

const millrace = await Millrace.connect({ ...ownDatabase(), logLevel: "silent" });
const adminKey = randomUUID();
const server = new HttpServer({ millrace, port: 0, adminKey });
await server.start();

say("1. Payload rules: a payload that carries a secret and a mail's body is refused, by path");
const careless = {
  ...envelope({ connection_id: "conn_good" }, "careless"),
  access_token: "ya29.a0AfH6SMBx",
  mail: { body_html: "<p>Dear Ann</p>" },
};
const refusal = await millrace.enqueue(fetchMail, careless).catch((error) => error);
for (const { code, path } of refusal.details.problems) say(`  ${refusal.code}: ${code} at ${path}`);
const bare = await millrace.enqueue(fetchMail, {}).catch((error) => error);
say(`  an empty one lacks ${bare.details.problems.map(({ path }) => path).join(", ")}`);

say("2. Error classes: five mailboxes, three kinds of trouble");
millrace.events.on("job.settled", ({ outcome }) => {
  if (outcome.kind === "retried" || outcome.kind === "dead")
    say(`  ${outcome.kind} (${outcome.error.class}): ${outcome.error.message}`);
});
await millrace.work([fetchMail, parseMail]);
const connections = ["conn_good", "conn_flaky", "conn_busy", "conn_revoked", "conn_left"];
const fetches = await millrace.enqueueMany(
  fetchMail,
  connections.map((connection_id) => envelope({ connection_id }, `fetch-${connection_id}`)),
);
for (const { id } of fetches) await millrace.waitFor(id);

say("3. The same request again is the same job");
const again = await millrace.enqueue(fetchMail, (await millrace.get(fetches[0].id)).payload);
say(`  existing: ${again.existing}, the same id: ${again.id === fetches[0].id}`);

say("4. Dead letters: an operator repairs one and gives up the other, each with a reason");
const operator = new HttpClient({ url: server.url, key: adminKey, tenant: tenantId });
const dead = await operator.deadLetters();
const kinds = new Set(dead.map(({ errorFingerprint }) => errorFingerprint));
say(`  ${dead.length} dead letters, ${kinds.size} kind of error: ${dead[0].errorMessage}`);
provider.grant("conn_revoked");
const unexplained = await operator.reprocess(fetches[3].id, " ").catch((error) => error);
say(`  without a reason: ${unexplained.code}`);
const repaired = await operator.reprocess(fetches[3].id, "the owner gave the permission again");
const { state } = await millrace.waitFor(repaired.id);
const old = await millrace.get(fetches[3].id);
say(
  `  reprocessed: the new job is ${state}, linked to the old: ${old.reprocessedAs === repaired.id}`,
);
await operator.discard(fetches[4].id, "the customer has left");
say(`  discarded the other; ${(await operator.deadLetters()).length} wait now`);

say("5. The audit trail says who did what, and why");
const { entries } = await operator.caller.call("GET", "/api/audit", {
  query: { tenant_id: tenantId },
});
for (const { action, actor, reason } of entries.reverse())
  say(`  ${action} by ${actor}: ${reason ?? "–"}`);
const trail = await new HttpClient({ url: server.url, key: adminKey }).caller.call(
  ...["GET", "/api/audit/verify"],
);
say(`  every hash checked: ${trail.ok ? "nobody has changed it" : trail.problem}`);

await server.stop();
await millrace.stop();
const asItShould = [
  refusal.code === "PAYLOAD_INVALID",
  again.id === fetches[0].id,
  dead.length === 2 && dead.every(({ attempt }) => attempt === 1),
  unexplained instanceof Error,
  state === "completed" && old.reprocessedAs === repaired.id,
  entries.length === 3 && trail.ok,
];
if (asItShould.includes(false)) process.exitCode = 1;
