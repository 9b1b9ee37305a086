// What the service answers, typed by its own contract. Types only: nothing of it is in the bundle.

import type { z } from "zod";
import type * as automation from "../../../src/http/contract/automation.ts";
import type * as cluster from "../../../src/http/contract/cluster.ts";
import type * as deadLetters from "../../../src/http/contract/dead-letters.ts";
import type * as jobs from "../../../src/http/contract/jobs.ts";
import type * as queues from "../../../src/http/contract/queues.ts";
import type * as system from "../../../src/http/contract/system.ts";

type Answer<R, Status extends number> = R extends { answers: infer A }
  ? A extends { [S in Status]: { body: infer B extends z.ZodType } }
    ? z.output<B>
    : never
  : never;

export type JobPage = Answer<typeof jobs.listJobs, 200>;
export type JobSummary = JobPage["jobs"][number];
export type JobState = JobSummary["state"];
export type FullJob = Answer<typeof jobs.readJob, 200>;
export type Run = FullJob["timeline"][number];
export type Cancelled = Answer<typeof jobs.cancelJob, 200>;
export type Reprocessed = Answer<typeof jobs.retryJob, 201>;
export type Statistics = Answer<typeof jobs.readAdminStatistics, 200>;

export type DeadLetterPage = Answer<typeof deadLetters.listDeadLetters, 200>;
export type DeadLetter = DeadLetterPage["dlq_items"][number];
export type DeadLetterStatistics = Answer<typeof deadLetters.readDeadLetterStatistics, 200>;
export type ReprocessedMany = Answer<typeof deadLetters.reprocessDeadLetters, 200>;
export type DiscardedMany = Answer<typeof deadLetters.discardDeadLetters, 200>;

export type QueuePage = Answer<typeof queues.listQueues, 200>;
export type Queue = QueuePage["queues"][number];
export type QueueStats = Answer<typeof queues.readQueueStats, 200>;

export type TriggerPage = Answer<typeof automation.listTriggers, 200>;
export type Trigger = TriggerPage["triggers"][number];

export type Workers = Answer<typeof cluster.listWorkers, 200>;
export type Worker = Workers["workers"][number];
export type Cluster = Answer<typeof cluster.readCluster, 200>;

export type Readiness = Answer<typeof system.readReadiness, 200>;
export type ApiKey = Answer<typeof system.readKey, 200>;
export type ApiKeyWithSecret = Answer<typeof system.createKey, 201>;
export type AuditPage = Answer<typeof system.listAudit, 200>;
export type AuditEntry = AuditPage["entries"][number];
export type AuditVerification = Answer<typeof system.verifyAudit, 200>;
export type Role = ApiKey["role"];
