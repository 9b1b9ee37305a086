// The limit: Millrace's own hot table driven by plain SQL in batches, without history, leases, claim rows,
// retries or validation. One connection each for inserting and claiming, as in Millrace.
import { randomBytes, randomUUID } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";

const counts = { enqueue: 200_000, drain: 200_000, end_to_end: 100_000 };

export const modes = {
  single: [{ label: "unnest of 200, claim by 200", counts, claimSize: 200, batch: 200 }],
  bulk: [
    {
      label: "unnest of 1,000 × 2, claim by 1,000",
      counts,
      claimSize: 1000,
      batch: 1000,
      bulkInFlight: 2,
    },
  ],
};

const insert = `
  insert into millrace.job (id, seq, created_at, ready_at, queue_id, weight, max_attempts, type, tenant, payload)
  select id, $1::bigint + n, now(), now(), 1, 5, 5, 'bench', 'default', payload
  from unnest($2::uuid[], $3::json[]) with ordinality as batch (id, payload, n)`;

// Deletes the last batch and claims the next one behind the hint, in one statement.
const next = `
  with done as (delete from millrace.job where id = any($1::uuid[]))
  update millrace.job set claim_id = $2, started_at = now(), claim_no = claim_no + 1, attempt = attempt + 1
  where ctid = any(array(
    select ctid from millrace.job
    where queue_id = 1 and weight = 5 and tenant_slot = 0 and lane = 0 and seq > $3 and claim_id is null
    order by queue_id, weight, tenant_slot, lane, seq limit $4 for update skip locked))
  returning id, seq, payload`;

const migrations = new URL("../dist/store/postgres/migrations/", import.meta.url);

export async function migrate(url) {
  const client = await connect(url);
  await client.query("create schema millrace");
  for (const file of readdirSync(migrations).sort()) {
    if (file.endsWith(".sql")) await client.query(readFileSync(new URL(file, migrations), "utf8"));
  }
  await client.end();
}

// A limit whose plans collapse when statistics are stale is none: each statement has its index, as in Millrace.
const options = [
  "-c enable_seqscan=off -c enable_bitmapscan=off",
  "-c plan_cache_mode=force_generic_plan -c jit=off",
].join(" ");

async function connect(url) {
  const client = new pg.Client({ connectionString: url, options });
  client.on("error", () => {});
  await client.connect();
  return client;
}

// Ids in time order, like Millrace's own: random ones would make the primary key's index dearer.
function timeOrderedIds(count) {
  const random = randomBytes(count * 10).toString("hex");
  const time = Date.now().toString(16).padStart(12, "0");
  return Array.from({ length: count }, (_, i) => {
    const r = random.slice(i * 20, i * 20 + 20);
    return `${time.slice(0, 8)}-${time.slice(8)}-7${r.slice(1, 4)}-a${r.slice(5, 8)}-${r.slice(8)}`;
  });
}

export async function openProducer(url) {
  const client = await connect(url);
  let seq = 0;
  const many = async (payloads) => {
    const ids = timeOrderedIds(payloads.length);
    const values = [seq, ids, payloads.map((payload) => JSON.stringify(payload))];
    seq += payloads.length;
    await client.query({ name: "insert", text: insert, values });
  };
  return { one: (payload) => many([payload]), many, close: () => client.end() };
}

export async function openConsumer(url, config, handle) {
  const client = await connect(url);
  let running = true;
  // Of several workers, two may each have locked what the other has just claimed: one of them tries again.
  const take = async (values) => {
    for (;;) {
      try {
        return (await client.query({ name: "next", text: next, values })).rows;
      } catch (error) {
        if (error.code !== "40P01") throw error;
      }
    }
  };
  const loop = async () => {
    let done = [];
    let hint = -1;
    while (running) {
      const rows = await take([done, randomUUID(), hint, config.claimSize]);
      for (const row of rows) {
        handle(row.payload);
        hint = Math.max(hint, Number(row.seq));
      }
      done = rows.map((row) => row.id);
      if (rows.length === 0) await sleep(1);
    }
  };
  const looping = loop();
  return {
    async close() {
      running = false;
      await looping;
      await client.end();
    },
  };
}

export async function isSettled(client) {
  const { rows } = await client.query("select not exists (select from millrace.job) as settled");
  return rows[0].settled;
}
