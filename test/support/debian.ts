// Programs from Debian's packages: installed as root, unpacked into a folder otherwise.

import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readdir, rename } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);

export const succeeds = (command: string, args: readonly string[], cwd = tmpdir()) =>
  run(command, args, { cwd, env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" } }).then(
    () => true,
    () => false,
  );

const install = ["install", "--no-install-recommends"];

/** Test files run at the same time: whoever comes second waits for the first one's lock. */
export const installPackages = async (...packages: readonly string[]): Promise<boolean> =>
  process.getuid?.() === 0 &&
  succeeds("apt-get", ["-o", "DPkg::Lock::Timeout=300", ...install, "-y", ...packages]);

/** These packages and those they need that this machine lacks. */
export async function missingPackages(...packages: readonly string[]): Promise<string[]> {
  const { stdout } = await run("apt-get", [...install, "--simulate", ...packages]).catch(() => ({
    stdout: "",
  }));
  const named = [...stdout.matchAll(/^Inst (\S+)/gm)].map(([, name]) => String(name));
  return [...new Set([...packages, ...named])];
}

export interface Unpacked {
  readonly program: string;
  readonly env: Readonly<Record<string, string>>;
}

/** Kept under a fixed name, so that the next run finds it. */
export async function unpackPackages(
  name: string,
  program: string,
  packages: () => Promise<readonly string[]>,
): Promise<Unpacked | undefined> {
  const folder = join(tmpdir(), `millrace-test-${name}-${process.getuid?.() ?? 0}`);
  const path = join(folder, program);
  if (!existsSync(path)) {
    const fresh = await mkdtemp(`${folder}-`);
    if (!(await succeeds("apt-get", ["download", ...(await packages())], fresh))) return undefined;
    for (const file of await readdir(fresh)) await succeeds("dpkg", ["-x", file, "."], fresh);
    await rename(fresh, folder).catch(() => {}); // another process was faster
  }
  if (!existsSync(path)) return undefined;
  await mkdir(join(folder, "usr/lib"), { recursive: true });
  const libraries = (await readdir(join(folder, "usr/lib"))).map((one) =>
    join(folder, "usr/lib", one),
  );
  return { program: path, env: { LD_LIBRARY_PATH: libraries.join(":") } };
}
