// Apart from the scenarios themselves, so that --help needs nothing installed.
export const scenarioNames = [
  "enqueue",
  "drain",
  "end_to_end_single",
  "end_to_end_bulk",
  "pickup_idle",
  "backlog_10k",
  "backlog_1m",
  "after_2m_processed",
  "old_snapshot_held",
  "payload_1kb",
  "workers_1_2_4",
  "brokered",
  "redis_outage",
  "flow_control",
];
