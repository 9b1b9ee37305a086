// Every promise of src/queue/queue.ts, topic by topic. Each test gets a queue of its own.

import { describe } from "vitest";
import { capacity } from "./queue-capacity.ts";
import { crashes } from "./queue-crashes.ts";
import { deadList } from "./queue-dead.ts";
import { delays } from "./queue-delays.ts";
import { identity } from "./queue-identity.ts";
import { input } from "./queue-input.ts";
import { order } from "./queue-order.ts";
import { shutdown } from "./queue-shutdown.ts";
import {
  type MakeStage,
  type QueueTopic,
  type SharedQueueStage,
  useStages,
} from "./queue-stage.ts";
import { taking } from "./queue-taking.ts";
import { waiting } from "./queue-waiting.ts";

const topics: Record<string, QueueTopic> = {
  order,
  delays,
  "waiting takes": waiting,
  "taken items": taking,
  identity,
  "the dead list": deadList,
  capacity,
  "bad input": input,
  shutdown,
};

export function queueConformance(name: string, makeStage: MakeStage): void {
  describe(name, () => {
    for (const [topic, register] of Object.entries(topics)) {
      describe(topic, () => register(useStages(makeStage)));
    }
  });
}

/** The same for a queue that outlives its takers: several processes share it, on a server of its own. */
export function sharedQueueConformance(name: string, makeStage: MakeStage<SharedQueueStage>): void {
  queueConformance(name, makeStage);
  describe(`${name}: crashes`, () => crashes(useStages(makeStage)));
}
