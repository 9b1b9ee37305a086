// Every command there is, in the order in which the help names them.

import { auditVerify } from "./audit-verify.ts";
import { bench } from "./bench.ts";
import { breakers } from "./breakers.ts";
import type { Command } from "./command.ts";
import { createCompletion } from "./completion.ts";
import { dev } from "./dev.ts";
import { dlqList } from "./dlq-list.ts";
import { dlqDiscard, dlqReprocess } from "./dlq-repair.ts";
import { dlqShow } from "./dlq-show.ts";
import { doctor } from "./doctor.ts";
import { enqueue } from "./enqueue.ts";
import { explain } from "./explain.ts";
import { init } from "./init.ts";
import { jobsList } from "./jobs-list.ts";
import { jobsCancel, jobsRetry } from "./jobs-repair.ts";
import { jobsShow } from "./jobs-show.ts";
import { jobsTail } from "./jobs-tail.ts";
import { keysCreate, keysList, keysRevoke } from "./keys.ts";
import { manager } from "./manager.ts";
import { migrate } from "./migrate.ts";
import { promote } from "./promote.ts";
import { queuesList } from "./queues-list.ts";
import { queuesPause, queuesResume } from "./queues-pause.ts";
import { queuesSet, queuesShow } from "./queues-settings.ts";
import { serve } from "./serve.ts";
import { top } from "./top.ts";
import { triggersDisable, triggersEnable, triggersList, triggersShow } from "./triggers.ts";
import { worker } from "./worker.ts";

interface Section {
  readonly title: string;
  readonly commands: readonly Command[];
}

const completion = createCompletion(() => commands);

export const sections: readonly Section[] = [
  { title: "Begin", commands: [dev, init] },
  { title: "Run", commands: [worker, enqueue, serve, manager] },
  {
    title: "Look and repair",
    commands: [
      ...[top, explain],
      ...[jobsList, jobsShow, jobsTail, jobsCancel, jobsRetry],
      ...[queuesList, queuesShow, queuesSet, queuesPause, queuesResume],
      ...[dlqList, dlqShow, dlqReprocess, dlqDiscard],
      ...[triggersList, triggersShow, triggersEnable, triggersDisable],
      breakers,
    ],
  },
  {
    title: "Look after the database",
    commands: [doctor, migrate, promote, keysCreate, keysList, keysRevoke, auditVerify],
  },
  { title: "And", commands: [completion, bench] },
];

export const commands: readonly Command[] = sections.flatMap((section) => section.commands);
