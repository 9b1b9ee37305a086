// Every promise of src/store/store.ts, topic by topic. Each topic gets a store of its own.

import { afterAll, beforeAll, describe } from "vitest";
import { breakers } from "./breakers.ts";
import { cancelAndDelete } from "./cancel.ts";
import { claim } from "./claim.ts";
import { deadLetters } from "./dead-letters.ts";
import { earlyStart } from "./early-start.ts";
import { enqueue } from "./enqueue.ts";
import { enqueueInTransaction } from "./enqueue-in.ts";
import { handover } from "./handover.ts";
import { handoverOfSeveral } from "./handover-several.ts";
import { laneVisits } from "./lane-visits.ts";
import { lanes } from "./lanes.ts";
import { lapse } from "./lapse.ts";
import { leadership } from "./leadership.ts";
import { lease } from "./lease.ts";
import { longPayloads } from "./long-payloads.ts";
import { names } from "./names.ts";
import { notices } from "./notices.ts";
import { notifier } from "./notifier.ts";
import { presence } from "./presence.ts";
import { promote } from "./promote.ts";
import { queues } from "./queues.ts";
import { retention } from "./retention.ts";
import { settle } from "./settle.ts";
import { settleRaces } from "./settle-races.ts";
import { shares } from "./shares.ts";
import { type OpenStore, Stage, type Topic } from "./stage.ts";
import { triggerCrowds } from "./trigger-crowds.ts";
import { triggerItems } from "./trigger-items.ts";
import { triggerSettle } from "./trigger-settle.ts";
import { triggers } from "./triggers.ts";
import { upkeep } from "./upkeep.ts";
import { webhooks } from "./webhooks.ts";

const topics: Record<string, Topic> = {
  enqueue,
  names,
  "enqueue in the caller's transaction": enqueueInTransaction,
  claim,
  "early start": earlyStart,
  "long payloads": longPayloads,
  "controlled queues": lanes,
  "visits of keys": laneVisits,
  "shares, ageing, throttles and rates": shares,
  settle,
  "a settle beside others": settleRaces,
  lease,
  lapse,
  leadership,
  presence,
  "promote and expire": promote,
  "cancel and delete": cancelAndDelete,
  "dead letters": deadLetters,
  queues,
  upkeep,
  retention,
  notices,
  "handover to a worker elsewhere": handover,
  "handover of several jobs": handoverOfSeveral,
  notifier,
  webhooks,
  breakers,
  triggers,
  "triggers in a crowd": triggerCrowds,
  "items that a trigger's job holds": triggerItems,
  "items settled one by one": triggerSettle,
};

export function storeConformance(name: string, openStore: () => Promise<OpenStore>): void {
  describe(name, () => {
    for (const [topic, register] of Object.entries(topics)) {
      describe(topic, () => registerTopic(register, openStore));
    }
  });
}

export function registerTopic(register: Topic, openStore: () => Promise<OpenStore>): void {
  let stage: Stage | undefined;
  beforeAll(async () => {
    stage = new Stage(await openStore());
  });
  afterAll(() => stage?.close());
  register(() => {
    if (stage === undefined) throw new Error("the store is not open yet");
    return stage;
  });
}
