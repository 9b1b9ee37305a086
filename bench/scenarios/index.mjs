import * as after2mProcessed from "./after_2m_processed.mjs";
import * as backlog from "./backlog.mjs";
import * as brokered from "./brokered.mjs";
import * as drain from "./drain.mjs";
import * as endToEndBulk from "./end_to_end_bulk.mjs";
import * as endToEndSingle from "./end_to_end_single.mjs";
import * as enqueue from "./enqueue.mjs";
import * as flowControl from "./flow_control.mjs";
import * as oldSnapshotHeld from "./old_snapshot_held.mjs";
import * as payload1kb from "./payload_1kb.mjs";
import * as pickupIdle from "./pickup_idle.mjs";
import * as redisOutage from "./redis_outage.mjs";
import * as workers from "./workers_1_2_4.mjs";

export const scenarios = [
  enqueue,
  drain,
  endToEndSingle,
  endToEndBulk,
  pickupIdle,
  backlog,
  after2mProcessed,
  oldSnapshotHeld,
  payload1kb,
  workers,
  brokered,
  redisOutage,
  flowControl,
];
