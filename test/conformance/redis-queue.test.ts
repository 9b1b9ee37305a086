// The queue's contract on one Redis, and on one that lacks what Redis 5 lacks.

import { afterAll, beforeAll, describe } from "vitest";
import { redisQueueStage } from "../support/redis-queue.ts";
import { type RedisServer, type RedisServerOptions, startRedis } from "../support/redis-server.ts";
import { sharedQueueConformance } from "./queue.conformance.ts";
import { queueProperty } from "./queue.property.ts";
import type { StageOptions } from "./queue-stage.ts";

/** All that came after Redis 5 and that a queue might be tempted by. */
const newerThanRedis5 = [
  ...["BLMOVE", "LMOVE", "LMPOP", "BLMPOP", "ZMPOP", "BZMPOP", "LPOS", "ZMSCORE", "ZRANGESTORE"],
  ...["FUNCTION", "FCALL", "FCALL_RO", "EVAL_RO", "EVALSHA_RO", "COPY", "GETEX", "GETDEL"],
  ...[
    "HRANDFIELD",
    "SMISMEMBER",
    "SINTERCARD",
    "ZDIFF",
    "ZUNION",
    "ZINTER",
    "ZRANDMEMBER",
    "HELLO",
  ],
];

const servers: Record<string, RedisServerOptions> = {
  "one Redis": { durable: true },
  "an older Redis": { durable: true, hidden: newerThanRedis5 },
};

for (const [name, options] of Object.entries(servers)) {
  describe(name, () => {
    let server: RedisServer | undefined;
    beforeAll(async () => {
      server = await startRedis(options);
    });
    afterAll(() => server?.drop());
    const open = (stage?: StageOptions) => {
      if (server === undefined) throw new Error("the server is not up yet");
      return redisQueueStage({ servers: [server], url: server.url }, stage);
    };
    sharedQueueConformance(`RedisQueue on ${name}`, open);
    queueProperty(`RedisQueue on ${name}`, open, { numRuns: 15, maxSteps: 60 });
  });
}
