// Chromium: the one on the PATH; else installed (as root, on Debian) or unpacked (not as root).

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdtemp, readdir, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { promisify } from "node:util";
import { type Browser, chromium } from "playwright-core";

interface ChromiumBinary {
  readonly path: string;
  readonly env: Readonly<Record<string, string>>;
}

const run = promisify(execFile);
const succeeds = (command: string, args: readonly string[], cwd = tmpdir()) =>
  run(command, args, { cwd }).then(
    () => true,
    () => false,
  );

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function onPath(): ChromiumBinary | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  const path = paths.find((one) => existsSync(one));
  return path === undefined ? undefined : { path, env: {} };
}

async function findChromium(): Promise<ChromiumBinary> {
  const there = onPath();
  if (there !== undefined) return there;
  if (process.getuid?.() === 0) await succeeds("apt-get", ["install", "-y", "chromium"]);
  const found = onPath() ?? (await unpack());
  if (found !== undefined) return found;
  throw new Error(
    "These tests need Chromium. Install it so that chromium is on the PATH, for example with: " +
      "apt-get install chromium, or brew install --cask chromium",
  );
}

/** Kept under a fixed name, so that the next run finds it. */
async function unpack(): Promise<ChromiumBinary | undefined> {
  const folder = join(tmpdir(), `millrace-test-chromium-${process.getuid?.() ?? 0}`);
  const path = join(folder, "usr/lib/chromium/chromium");
  if (!existsSync(path)) {
    const fresh = await mkdtemp(`${folder}-`);
    const packages = await missingPackages();
    if (!(await succeeds("apt-get", ["download", ...packages], fresh))) return undefined;
    for (const file of await readdir(fresh)) await succeeds("dpkg", ["-x", file, "."], fresh);
    await rename(fresh, folder).catch(() => {}); // another process was faster
  }
  if (!existsSync(path)) return undefined;
  const libraries = (await readdir(join(folder, "usr/lib"))).map((name) =>
    join(folder, "usr/lib", name),
  );
  return { path, env: { LD_LIBRARY_PATH: libraries.join(":") } };
}

/** Chromium and those of its libraries that this machine lacks. */
async function missingPackages(): Promise<string[]> {
  const args = ["install", "--simulate", "--no-install-recommends", "chromium"];
  const { stdout } = await run("apt-get", args).catch(() => ({ stdout: "" }));
  const named = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => String(name));
  return [...new Set(["chromium", "chromium-common", ...named])];
}

export async function startBrowser(): Promise<Browser> {
  const { path, env } = await findChromium();
  return chromium.launch({
    executablePath: path,
    env: { ...(process.env as Record<string, string>), ...env },
    args: [
      ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
      ...["--disable-background-networking", "--disable-component-update"],
    ],
  });
}
