// RobotWorker against the service itself: however the service or the run behaves, each item has one end.

import { describe, expect, test } from "vitest";
import { BusinessException, HttpClient, type RobotOptions, RobotWorker } from "../../src/client.ts";
import { useHttp } from "../support/http.ts";
import { robotStage } from "../support/robot-stage.ts";
import { until } from "../support/until.ts";
import { robotTroubleSuite } from "./robot-trouble.ts";

const http = useHttp({}, { reclaimMs: 100 });
const { connect, items } = robotStage(http);

describe("a robot worker", () => {
  test("leases, works and ends each item as its run does", async () => {
    const { queue, ids, read, client } = await items([1, -1, "x"], { max_retries: 2 });
    const robot = new RobotWorker(client, {
      ...{ queue, concurrency: 2, robotId: "r2d2" },
      run({ item }) {
        if (typeof item.payload !== "number") throw new Error("not a number");
        if (item.payload < 0) throw new BusinessException("negative");
        return { double: item.payload * 2 };
      },
    });
    robot.start();
    await until("all were tried", async () => (await read(ids[2])).retries === 1);
    await until("the first is done", async () => (await read()).status === "DONE");
    await robot.stop();
    expect(await read()).toMatchObject({ result: { double: 2 }, locked_by_robot_id: "r2d2" });
    expect(await read(ids[1])).toMatchObject({ status: "FAILED", exception_type: "business" });
    expect(await read(ids[2])).toMatchObject({ status: "NEW", error_message: "not a number" });
  });

  test("renews while it works, hears of a cancel, and finishes before it stops", async () => {
    const { queue, ids, read, client } = await items([1]);
    let over = () => {};
    let aborted = false;
    const robot = new RobotWorker(client, {
      ...{ queue, leaseSeconds: 3 },
      run: ({ signal }) =>
        new Promise<void>((resolve) => {
          over = resolve;
          signal.addEventListener("abort", () => {
            aborted = true;
            resolve();
          });
        }),
    });
    robot.start();
    const held = await until("it is held", async () => {
      const item = await read();
      return item.status === "IN_PROGRESS" && item;
    });
    await until("it was renewed", async () => {
      const { lock_expires_at } = await read();
      return lock_expires_at > held.lock_expires_at;
    });
    await http.call("POST", `/api/jobs/${ids[0]}/cancel`);
    await until("the run is told", () => aborted);
    over();
    await robot.stop();
    // It ended well after all, and that counts.
    expect((await read()).status).toBe("DONE");
  });

  test("goes on when the service was away", async () => {
    const { queue, read } = await items([1]);
    const errors: unknown[] = [];
    let left = 2;
    const robot = new RobotWorker(
      new HttpClient({
        ...{ url: http.baseUrl, key: await http.key("robot", "acme") },
        fetch: async (...call) => {
          if (left-- > 0) throw new TypeError("no route to host");
          return fetch(...call);
        },
      }),
      { queue, run: () => "done", onError: (error) => errors.push(error) },
    );
    robot.start();
    await until("it is done", async () => (await read()).status === "DONE");
    await robot.stop();
    expect(errors).toHaveLength(2);
  });

  test("refuses options that make no sense when it is made", () => {
    const run = () => {};
    const wrong: [object, RegExp][] = [
      [{ run }, /queue/],
      [{ queue: "", run }, /queue/],
      [{ queue: "q" }, /run/],
      [{ queue: "q", run, concurrency: 0 }, /concurrency/],
      [{ queue: "q", run, concurrency: 1.5 }, /concurrency/],
      [{ queue: "q", run, leaseSeconds: 0.5 }, /leaseSeconds/],
      [{ queue: "q", run, leaseSeconds: Number.NaN }, /leaseSeconds/],
      [{ queue: "q", run, waitSeconds: 61 }, /waitSeconds/],
      [{ queue: "q", run, robotId: 7 }, /robotId/],
      [{ queue: "q", run, onError: "log" }, /onError/],
      [{ queue: "q", run, leaseSecond: 5 }, /Did you mean "leaseSeconds"/],
    ];
    for (const [options, reason] of wrong) {
      const make = () => new RobotWorker(connect(), options as RobotOptions);
      expect(make).toThrow(reason);
      expect(make).toThrow(expect.objectContaining({ code: "OPTION_INVALID" }));
    }
  });
});

describe("in trouble, a robot worker", () => robotTroubleSuite(http));
