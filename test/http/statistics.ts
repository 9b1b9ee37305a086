import { expect, test } from "vitest";
import { useHttp } from "../support/http.ts";
import { newQueue } from "../support/instance.ts";

export function statisticsSuite(): void {
  const http = useHttp();
  const post = (body: unknown) => http.call("POST", "/api/jobs", { body });

  test("counts by queue", async () => {
    const queue = newQueue();
    await post({
      jobs: [
        { type: "t", queue },
        { type: "t", queue },
      ],
    });
    const { body } = await http.call("GET", "/api/jobs/admin/queue/statistics");
    const own = body.queues.find(({ name }: { name: string }) => name === queue);
    expect(own).toMatchObject({ enqueued: 2, depth: 2, completed: 0, tenant_id: null });
    expect(body.totals.enqueued).toBeGreaterThanOrEqual(2);
    expect(own.recent).toEqual({ enqueued: 2, completed: 0, retried: 0, dead: 0 });
  });

  test("tells minute by minute what came of the last ones", async () => {
    const path = "/api/jobs/admin/queue/statistics";
    const { series, queues } = (await http.call("GET", `${path}?minutes=60`)).body;
    expect(series).toHaveLength(60);
    const at = series.map((minute: { at: string }) => Date.parse(minute.at));
    expect(at).toEqual(at.map((_: number, i: number) => at[0] + i * 60_000));
    const sum = (list: { enqueued: number }[]) => list.reduce((n, one) => n + one.enqueued, 0);
    const recent = queues.map((queue: { recent: { enqueued: number } }) => queue.recent);
    expect(sum(series)).toBe(sum(recent));
    expect(sum(series)).toBeGreaterThan(0);
    expect((await http.call("GET", path)).body.series).toHaveLength(30);
    for (const minutes of ["0", "61", "x"])
      expect((await http.call("GET", `${path}?minutes=${minutes}`)).status).toBe(400);
  });

  test("tells of one queue since when it counts: not before the queue was made", async () => {
    const name = newQueue();
    const { body: queue } = await http.call("POST", "/api/queues", { body: { name } });
    await post({ type: "t", queue: name });
    const path = "/api/jobs/admin/queue/statistics";
    const { body } = await http.call("GET", `${path}?minutes=60&queue_id=${queue.id}`);
    expect(body.queues).toMatchObject([{ name, recent: { enqueued: 1 } }]);
    expect(body.totals.enqueued).toBe(1);
    expect(body.from).toBe(queue.created_at);
    expect(Date.parse(body.to)).toBeGreaterThan(Date.parse(body.from));
    expect((await http.call("GET", `${path}?queue_id=2147483647`)).body.code).toBe(
      "QUEUE_NOT_FOUND",
    );
    await http.query(
      "update millrace.queue set created_at = now() - interval '1 day' where id = $1",
      [queue.id],
    );
    const { body: old } = await http.call("GET", `${path}?minutes=5&queue_id=${queue.id}`);
    expect(old.from).toBe(old.series[0].at);
  });
}
