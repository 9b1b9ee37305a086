// What keeps the queue healthy, on a connection of its own. With a term every write is a leader's.

import type { UpkeepSession } from "../store.ts";
import type { Database } from "./database.ts";
import { findLapsed, forgetEnded, leaseCensus } from "./lapsed.ts";
import { fenced, readLeadership } from "./leader.ts";
import { noticeTexts } from "./notices.ts";
import { expireDue, promoteDue, waitForDue } from "./promote.ts";
import { prune } from "./retention.ts";
import { settleLapsedJobs } from "./settle.ts";
import { statement } from "./statement.ts";
import { estimateHotRows, tidyUp, vacuumHotTables } from "./upkeep.ts";

interface UpkeepOptions {
  readonly term: number | undefined;
  readonly patienceMs: number;
}

const announce = statement("announce_due", "select pg_notify(@channel, $1::text)");

export function openUpkeep(database: Database, { term, patienceMs }: UpkeepOptions): UpkeepSession {
  const connection = database.reserve("upkeep", { settings: { lock_timeout: "2s" } });
  const writer = term === undefined ? connection : fenced(connection, term, patienceMs);
  const { schema } = database;
  return {
    promote: (limit) => promoteDue(writer, limit),
    waitForDue: () => waitForDue(connection),
    expire: (limit, process) => expireDue(writer, limit, process),
    census: () => leaseCensus(connection),
    findLapsed: () => findLapsed(connection),
    settleLapsed: (leaseId, settlements, process) =>
      settleLapsedJobs(writer, leaseId, settlements, { worker: "reclaimer", process }),
    forgetEnded: () => forgetEnded(writer),
    hasLeader: async () => (await readLeadership(connection)).inOffice,
    announceDue: async (delayMs) => {
      await connection.query(announce, [noticeTexts.due(delayMs)]);
    },
    hotRows: () => estimateHotRows(connection),
    vacuum: () => vacuumHotTables(connection, schema),
    tidy: () => tidyUp(connection, writer, schema),
    prune: (retention) => prune(connection, writer, schema, retention),
    close: () => connection.close(),
  };
}
