import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { startEmbedded } from "../../src/store/postgres/embedded.ts";
import { Workplace } from "../support/embedded.ts";
import { refusal } from "../support/instance.ts";

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
