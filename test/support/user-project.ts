// A user's project as npm would lay it out: a folder with millrace and what its own code imports.

import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

export const root = join(import.meta.dirname, "..", "..");

export interface UserProject {
  readonly folder: string;
  /** Ends when the command and what it left in the background have ended. A failed one leaves nothing. */
  run(command: string, args: readonly string[], env?: NodeJS.ProcessEnv): Promise<Ended>;
  remove(): Promise<void>;
}

export interface Ended {
  readonly code: number | null;
  readonly output: string;
}

export async function createUserProject(imports: readonly string[] = []): Promise<UserProject> {
  const folder = await mkdtemp(join(tmpdir(), "millrace-docs-"));
  // The server's account must be able to enter, when root runs the tests.
  await chmod(folder, 0o755);
  const modules = join(folder, "node_modules");
  await mkdir(join(modules, ".bin"), { recursive: true });
  await symlink(root, join(modules, "millrace"));
  await symlink("../millrace/dist/cli/main.js", join(modules, ".bin", "millrace"));
  for (const name of imports) {
    await mkdir(dirname(join(modules, name)), { recursive: true });
    await symlink(join(root, "node_modules", name), join(modules, name));
  }
  await writeFile(join(folder, "package.json"), JSON.stringify({ type: "module" }));
  const groups = new Set<number>();
  return {
    folder,
    run: (command, args, env = {}) => run(folder, groups, command, args, env),
    async remove() {
      for (const group of groups) killGroup(group);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

/** What has ended already is as good. */
function killGroup(group: number) {
  try {
    process.kill(-group, "SIGKILL");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ESRCH") throw error;
  }
}

/** DATABASE_URL and its like come from `env` alone: the surroundings must not lead anywhere else. */
async function run(
  folder: string,
  groups: Set<number>,
  command: string,
  args: readonly string[],
  env: NodeJS.ProcessEnv,
): Promise<Ended> {
  const { DATABASE_URL, REDIS_URL, MILLRACE_DATA_DIR, ...around } = process.env;
  // As npm's scripts have it: `millrace` alone is enough.
  const PATH = `${join(folder, "node_modules", ".bin")}:${process.env.PATH}`;
  const options = { cwd: folder, env: { ...around, PATH, ...env }, detached: true };
  const child = spawn(command, args, { ...options, stdio: ["ignore", "pipe", "pipe"] });
  const group = child.pid ?? 0;
  if (group > 0) groups.add(group);
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (chunk) => {
      output += chunk;
    });
  }
  child.once("exit", (code) => {
    if (code !== 0 && group > 0) killGroup(group);
  });
  await once(child, "close");
  groups.delete(group);
  return { code: child.exitCode, output };
}
