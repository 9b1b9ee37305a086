import pg from "pg";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import type { Listener, Notice } from "../store.ts";
import type { Database } from "./database.ts";
import { asCoded } from "./failures.ts";
import { HandedPieces } from "./handed.ts";
import { parseNotice } from "./notices.ts";
import { leaveOffer, standOffer } from "./offers.ts";
import { statement } from "./statement.ts";

interface Context {
  readonly clock: Clock;
  readonly events: Events;
}

export async function listen(
  database: Database,
  hear: (notice: Notice) => void,
  { clock, events }: Context,
): Promise<Listener> {
  const standing = new Set<string>();
  /** Of leases: what is told there is for them alone. */
  const channels = new Set<string>();
  const pieces = new HandedPieces();
  const listenTo = (channel: string) => `listen ${pg.escapeIdentifier(channel)}`;
  let closed = false;
  const connection = database.reserve("listener", {
    onConnect: async (client) => {
      standing.clear();
      channels.clear();
      await client.query(listenTo(database.channel));
    },
    onNotification: (text, channel) => {
      if (channel === database.channel) {
        const notice = parseNotice(text);
        if (notice !== null) hear(notice);
      } else {
        const claim = pieces.take(text);
        if (claim !== null) hear({ kind: "handed", claim });
      }
    },
  });
  // The connection is idle by nature, so its loss shows only here; meanwhile polling covers.
  const off = events.on("connection.lost", ({ connection: name }) => {
    if (name === "listener") void reconnect();
  });
  const reconnect = async (): Promise<void> => {
    while (!closed) {
      try {
        await connection.connect();
        return hear({ kind: "ready", queueIds: [], late: true });
      } catch {
        await clock.sleep(100);
      }
    }
  };
  const close = async () => {
    closed = true;
    off();
    await connection.close();
  };
  try {
    await connection.connect();
  } catch (error) {
    await close();
    throw asCoded(error);
  }
  return {
    stands: (leaseId) => standing.has(leaseId),
    stand: async (leaseId, channel) => {
      if (standing.has(leaseId)) return;
      if (!channels.has(channel)) await connection.query(statement("", listenTo(channel)));
      channels.add(channel);
      if (await standOffer(connection, leaseId)) standing.add(leaseId);
    },
    leave: async (leaseId) => {
      if (standing.delete(leaseId)) await leaveOffer(connection, leaseId);
    },
    close,
  };
}
