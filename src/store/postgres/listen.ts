import pg from "pg";
import type { Clock } from "../../runtime/clock.ts";
import type { Events } from "../../runtime/events.ts";
import type { Notice } from "../store.ts";
import type { Database } from "./database.ts";
import { parseNotice } from "./notices.ts";

interface Context {
  readonly clock: Clock;
  readonly events: Events;
}

export async function listen(
  database: Database,
  hear: (notice: Notice) => void,
  { clock, events }: Context,
): Promise<{ close(): Promise<void> }> {
  const channel = pg.escapeIdentifier(database.channel);
  let closed = false;
  const connection = database.reserve("listener", {
    onConnect: async (client) => void (await client.query(`listen ${channel}`)),
    onNotification: (text) => {
      const notice = parseNotice(text);
      if (notice !== null) hear(notice);
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
  await connection.connect();
  return {
    close: async () => {
      closed = true;
      off();
      await connection.close();
    },
  };
}
