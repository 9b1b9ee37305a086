// What tests of RobotWorker share: a service, items for a robot, and a robot that notes what it is told.

import {
  HttpClient,
  type HttpClientOptions,
  type MillraceError,
  type RobotItem,
  type RobotOptions,
  RobotWorker,
} from "../../src/client.ts";
import { adminKey, type Http } from "./http.ts";
import { newQueue } from "./instance.ts";

export function robotStage(http: Http) {
  const connect = (more: Partial<HttpClientOptions> = {}) =>
    new HttpClient({ url: http.baseUrl, key: adminKey, ...more });

  async function items(payloads: readonly unknown[], more: object = {}) {
    const body = { name: newQueue(), tenant_id: "acme", ...more };
    const { id, name } = (await http.call("POST", "/api/queues", { body })).body;
    const key = await http.key("robot", "acme");
    const ids: string[] = [];
    for (const payload of payloads) {
      const item = { queue_id: id, payload };
      ids.push((await http.call("POST", "/api/queue-items", { key, body: item })).body.id);
    }
    const read = async (item = ids[0]) =>
      (await http.call("GET", `/api/queue-items/${item}`, { key })).body;
    return { queue: name, ids, read, client: connect({ key }) };
  }

  /** A robot that runs, and what it was told of. */
  function robotOf(client: HttpClient, options: RobotOptions) {
    const errors: unknown[] = [];
    const lost: RobotItem[] = [];
    const robot = new RobotWorker(client, {
      ...{ onError: (error) => errors.push(error), onLost: (item) => lost.push(item) },
      ...options,
    });
    robot.start();
    return {
      robot,
      errors,
      lost,
      codes: () => errors.map((error) => (error as MillraceError).code),
    };
  }

  return { connect, items, robotOf };
}
