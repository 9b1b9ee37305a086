import * as contract from "../contract/events.ts";
import { EventStream } from "../event-stream.ts";
import { type Served, serve } from "../served.ts";

const headers = {
  "content-type": "text/event-stream; charset=utf-8",
  // Proxies that collect answers would hold back what is meant to arrive at once.
  "x-accel-buffering": "no",
};

const readEvents = serve(
  contract.readEvents,
  async ({ query, headers: sent, identity, arrival }, { feed, caller }) => {
    const stream = new EventStream({
      identity,
      kinds: query.kinds === undefined ? undefined : new Set<string>(query.kinds),
      isAllowed: async () => {
        const now = (await caller.recognise(contract.readEvents, arrival)).identity;
        return now.tenant === identity.tenant && now.role === identity.role;
      },
    });
    const last = sent["last-event-id"];
    await feed.open(stream, last === undefined ? undefined : Number(last));
    return { status: 200 as const, body: stream.body, headers };
  },
);

export const eventRoutes: readonly Served[] = [readEvents];
