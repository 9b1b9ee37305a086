import { mkdir, readdir, readFile, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { Workplace } from "../support/embedded.ts";
import { refusal } from "../support/instance.ts";
import { until } from "../support/until.ts";

let place: Workplace;

beforeEach(async () => {
  place = await Workplace.create();
});
afterEach(() => place.cleanUp());

test("a cluster folder that holds something else is left alone, and the error says what to do", async () => {
  const cluster = join(place.dataDir, "cluster");
  await mkdir(cluster, { recursive: true });
  await writeFile(join(cluster, "somebody's"), "");
  const { code, message } = await refusal(startEmbedded({ dataDir: place.dataDir }));
  expect(code).toBe("EMBEDDED_UNAVAILABLE");
  for (const part of [cluster, "backup", "move it away"]) expect(message).toContain(part);
  expect(await readdir(cluster)).toEqual(["somebody's"]);
});

test("a cluster that is damaged is left alone, and the error says which and what to do", async () => {
  await (await startEmbedded({ dataDir: place.dataDir })).stop();
  const cluster = join(place.dataDir, "cluster");
  const control = join(cluster, "global", "pg_control");
  await writeFile(control, Buffer.alloc((await stat(control)).size, 7));
  const { code, message } = await refusal(startEmbedded({ dataDir: place.dataDir }));
  expect(code).toBe("EMBEDDED_UNAVAILABLE");
  for (const part of ["did not start", cluster, "backup", "move it away"])
    expect(message).toContain(part);
  expect((await readFile(control))[0]).toBe(7);
});

test("the last process does not wait for ever for a server that stands still", async () => {
  const holder = place.hold();
  await holder.opened();
  const pid = await place.postmasterPid();
  if (pid === undefined) throw new Error("there is no server");
  process.kill(pid, "SIGSTOP");
  try {
    await holder.stop();
    expect(await place.isStopped()).toBe(false);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  // Its keeper has not forgotten.
  await until("the server has stopped", () => place.isStopped());
});
