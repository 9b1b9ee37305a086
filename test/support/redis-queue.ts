// RedisQueue as the queue's conformance suite wants it: handles that a test can cut off from the server
// as a dead process is, and a server that it can kill and start again.

import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import type { Queue } from "../../src/queue/queue.ts";
import { RedisQueue } from "../../src/queue/redis-queue.ts";
import type { SharedQueueStage, StageOptions } from "../conformance/queue-stage.ts";
import type { RedisServer } from "./redis-server.ts";
import { until } from "./until.ts";

export interface RedisStageServers {
  readonly servers: readonly RedisServer[];
  /** In a Cluster a list, and with a Sentinel's master the Sentinel's. */
  readonly url: string | readonly string[];
  readonly sentinelMaster?: string;
}

const heartbeatMs = 150;
let users = 0;

export async function redisQueueStage(
  { servers, url, sentinelMaster }: RedisStageServers,
  options: StageOptions = {},
): Promise<SharedQueueStage> {
  const name = randomUUID();
  const handles = new Map<Queue<string>, { queue: RedisQueue<string>; user: string }>();
  const everywhere = (...args: string[]) =>
    Promise.all(servers.map((server) => server.command(...args)));
  const open = async () => {
    const user = `taker${++users}`;
    await everywhere("ACL", "SETUSER", user, "on", ">secret", "~*", "&*", "+@all");
    const queue = await RedisQueue.connect<string>({
      url: typeof url === "string" ? asUser(url, user) : url.map((one) => asUser(one, user)),
      ...(sentinelMaster === undefined ? {} : { sentinelMaster }),
      ...(options.priorities === undefined ? {} : { priorities: options.priorities }),
      ...(options.capacity === undefined ? {} : { maxDepth: options.capacity }),
      ...(options.warnDepth === undefined ? {} : { warnDepth: options.warnDepth }),
      ...(options.events === undefined ? {} : { events: options.events }),
      name,
      heartbeatMs,
    });
    handles.set(queue, { queue, user });
    return queue;
  };
  // Beats from the beginning, so that what the dead held comes back whatever the test's handles do.
  const caretaker = await open();
  await caretaker.dequeue();
  return {
    queue: open,
    now: () => Date.now(),
    advance: async (ms) => void (await delay(ms)),
    slackMs: 25,
    crash: async (handle) => {
      const victim = handles.get(handle);
      if (victim === undefined) throw new Error("not a handle of this stage");
      handles.delete(handle);
      await everywhere("ACL", "DELUSER", victim.user);
      const held = `millrace:{${name}}:held:${victim.queue.takerName}`;
      await until("what it held is back", async () => {
        const there = await Promise.all(
          servers.map((server) => server.command("EXISTS", held).catch(() => 0)),
        );
        return there.every((count) => count === 0);
      });
      await victim.queue.close();
    },
    restart: async () => {
      await everywhere("ACL", "SAVE");
      await Promise.all(servers.map((server) => server.restart()));
      // A node of a Cluster refuses for its first two seconds, each by its own clock.
      for (const server of servers) {
        await until("the server serves", async () => {
          const info = await server.command("CLUSTER", "INFO").catch(() => "no Cluster");
          return info === "no Cluster" || String(info).includes("cluster_state:ok");
        });
      }
      for (const { queue } of handles.values()) {
        await until("the handle works again", () =>
          queue.ping(1_000).then(
            () => true,
            () => false,
          ),
        );
      }
    },
    close: async () => {
      for (const { queue, user } of handles.values()) {
        await queue.close();
        await everywhere("ACL", "DELUSER", user);
      }
    },
  };
}

function asUser(url: string, user: string): string {
  const own = new URL(url);
  own.username = user;
  own.password = "secret";
  return own.href;
}
