// As root and as a normal user. Whoever runs the tests, both are covered as far as the system lets:
// root starts the normal user's case itself, a normal user checks what root's case rests on.

import { chmod, chown, copyFile, mkdir, readdir, realpath, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { viewOf } from "../../src/store/postgres/embedded-cluster.ts";
import { openDataDir } from "../../src/store/postgres/embedded-layout.ts";
import { canEnter, chooseServerUser } from "../../src/store/postgres/embedded-user.ts";
import { ask, type HolderOptions, Workplace } from "../support/embedded.ts";
import { copyPackage } from "../support/package-copy.ts";

const self = { uid: process.geteuid?.() ?? 0, gid: process.getegid?.() ?? 0 };
const isRoot = self.uid === 0;
let place: Workplace;
let elsewhere: Workplace;

beforeEach(async () => {
  place = await Workplace.create(0o700);
  elsewhere = await Workplace.create(0o755);
});
afterEach(async () => {
  await place.cleanUp();
  await elsewhere.cleanUp();
});

async function ownerOfServer(workplace: Workplace): Promise<number> {
  return (await stat(join(workplace.dataDir, "cluster"))).uid;
}

async function runTwice(workplace: Workplace, options: HolderOptions) {
  const first = workplace.hold(options);
  const { url, message } = await first.opened();
  expect(message).toBeUndefined();
  await ask(url, "CREATE TABLE kept AS SELECT 42 AS answer");
  const pid = await workplace.postmasterPid();
  const processOwner = (await stat(`/proc/${pid}`).catch(() => undefined))?.uid;
  await first.stop();
  const second = workplace.hold(options);
  expect(await ask((await second.opened()).url, "SELECT answer FROM kept")).toEqual({ answer: 42 });
  await second.stop();
  expect(await workplace.isStopped()).toBe(true);
  return processOwner;
}

test("the server never runs as root, also where only the starter may enter the data folder", async () => {
  const processOwner = await runTwice(place, {});
  expect((await stat(place.root)).mode & 0o777).toBe(0o700);
  const owner = await ownerOfServer(place);
  expect(owner).not.toBe(0);
  if (processOwner !== undefined) expect(processOwner).toBe(owner);

  const stranger = { uid: 54_321, gid: 54_321 };
  const layout = await openDataDir(place.dataDir);
  expect(await canEnter(place.dataDir, stranger)).toBe(false);
  expect(await canEnter(elsewhere.root, stranger)).toBe(true);
  if (process.platform === "linux") {
    expect((await viewOf(layout, stranger)).byDescriptor).toBe(true);
  } else await expect(viewOf(layout, stranger)).rejects.toThrow(/MILLRACE_DATA_DIR/);
  expect((await viewOf(layout, undefined)).byDescriptor).toBe(false);
});

test("a checkout that only its owner may enter, installed without the library links, works", async () => {
  const checkout = await copyPackage(join(place.root, "checkout"));
  const temporary = join(elsewhere.root, "tmp");
  await mkdir(temporary);
  await runTwice(place, { checkout, env: { TMPDIR: temporary } });
  const copies = await readdir(join(temporary, `millrace-${self.uid}`));
  expect(copies).toHaveLength(1);
  expect(copies[0]).toMatch(/^postgres-18\./);
});

test("a normal user runs the server under her own account", async () => {
  const user = isRoot ? await chooseServerUser("/nonexistent") : self;
  if (user === undefined) throw new Error("there is no account to run under");
  await chown(place.root, user.uid, user.gid);
  const options = isRoot ? { ...(await foreignCheckout(user)), user } : {};
  const processOwner = await runTwice(place, options);
  if (processOwner !== undefined) expect(processOwner).toBe(user.uid);
  for (const name of await readdir(place.dataDir)) {
    expect((await stat(join(place.dataDir, name))).uid).toBe(user.uid);
  }
  expect((await stat(place.dataDir)).mode & 0o777).toBe(0o700);
});

test("root takes over a user's data folder without taking it away from her", async () => {
  if (!isRoot) {
    expect(await chooseServerUser(place.root)).toBeUndefined();
    return;
  }
  const user = await chooseServerUser("/nonexistent");
  if (user === undefined) throw new Error("there is no account to run under");
  await chown(place.root, user.uid, user.gid);
  const options = { ...(await foreignCheckout(user)), user };
  const hers = place.hold(options);
  await hers.opened();
  await hers.stop();
  const roots = place.hold();
  expect((await roots.opened()).joined).toBe(false);
  const joining = place.hold(options);
  expect((await joining.opened()).joined).toBe(true);
  await roots.kill();
  await joining.stop();
  const again = place.hold(options);
  expect((await again.opened()).message).toBeUndefined();
  await again.stop();
});

/** The checkout and the node that runs these tests may both be out of another account's reach. */
async function foreignCheckout(user: { uid: number; gid: number }): Promise<HolderOptions> {
  const checkout = await copyPackage(join(elsewhere.root, "checkout"));
  const temporary = join(elsewhere.root, "tmp");
  await mkdir(temporary);
  await chmod(temporary, 0o1777);
  const env = { TMPDIR: temporary };
  const node = await realpath(process.execPath);
  if (await canEnter(dirname(node), user)) return { checkout, env };
  const copy = join(elsewhere.root, "node");
  await copyFile(node, copy);
  await chmod(copy, 0o755);
  return { checkout, env, node: copy };
}

test("a data folder that is there already and that only its owner may enter stays as it is", async () => {
  await mkdir(place.dataDir, { mode: 0o700 });
  const holder = place.hold({});
  const { url, message } = await holder.opened();
  expect(message).toBeUndefined();
  expect(await ask(url, "SELECT 42 AS answer")).toEqual({ answer: 42 });
  await holder.stop();
  expect((await stat(place.dataDir)).mode & 0o777).toBe(0o700);
  expect((await readdir(place.dataDir)).includes("embedded")).toBe(isRoot);
});
