// What each page of the dashboard asks, with ids and values that are there.

export async function pageCalls(call, filled) {
  const one = async (state) => {
    // A page may be empty while there is more.
    for (let cursor = ""; ; ) {
      const { body } = await call(`/api/jobs?limit=1&state=${state}${cursor}`);
      if (body.jobs.length > 0 || body.next_cursor === null) return body.jobs[0];
      cursor = `&cursor=${body.next_cursor}`;
    }
  };
  const [done, dead, ready] = [await one("completed"), await one("dead"), await one("ready")];
  const { queues } = (await call("/api/queues?limit=200")).body;
  const statistics = (await call("/api/jobs/admin/dlq/statistics")).body;
  const [group] = statistics.top_fingerprints;
  const [queue] = queues;
  const hourAgo = new Date(Date.now() - 3_600_000).toISOString();
  const jobs = "/api/jobs?limit=50";
  const { next_cursor: next } = (await call(jobs)).body;
  const letters = "/api/jobs/admin/dlq?status=pending_review&limit=50";
  const six = queues.slice(0, 6).map(({ id }) => `/api/queues/${id}/stats`);
  const paths = {
    Overview: [
      ...["/api/jobs/admin/queue/statistics?minutes=60", "/api/jobs/admin/dlq/statistics"],
      ...["/api/cluster", "/api/workers", "/api/breakers", "/api/queues?limit=200", ...six],
    ],
    Jobs: [
      ...[jobs, `${jobs}&cursor=${next}`, `${jobs}&state=dead`, `${jobs}&state=running`],
      ...[`${jobs}&state=ready,scheduled`, `${jobs}&state=cancelled`, `${jobs}&state=completed`],
      ...[`${jobs}&queue=${queue.name}`, `${jobs}&queue=${queue.name}&state=dead`],
      ...[`${jobs}&type=load.type7`, `${jobs}&tenant_id=tenant3`, `${jobs}&type=nobody.has.it`],
      ...[`${jobs}&tenant_id=tenant3&state=dead`, `${jobs}&created_from=${hourAgo}`],
      ...[`${jobs}&reference=INV-${filled.history.last}`, `${jobs}&id=${done.id}`],
      ...[`${jobs}&correlation_id=${done.correlation_id}`, `${jobs}&idempotency_key=key-1`],
    ],
    Job: [done, dead, ready].flatMap(({ id }) => [`/api/jobs/${id}`, `/api/jobs/${id}/explain`]),
    "Dead letters": [
      ...[letters, `${letters}&error_fingerprint=${group.error_fingerprint}`],
      ...[`${letters}&queue_id=${queue.id}`, `${letters}&tenant_id=tenant3`],
      ...[`${letters}&job_type=load.type7`, "/api/jobs/admin/dlq/statistics?tenant_id=tenant3"],
    ],
    Queues: ["/api/jobs/admin/queue/statistics?minutes=5"],
    Queue: [`/api/queues/${queue.id}`, `/api/queues/${queue.id}/stats`],
    Triggers: ["/api/triggers?limit=200"],
    "Tenants and keys": ["/api/tenants?limit=200", "/api/keys"],
    Audit: ["/api/audit?limit=50"],
    Health: ["/readyz"],
  };
  return Object.entries(paths).flatMap(([page, list]) => list.map((path) => ({ page, path })));
}
