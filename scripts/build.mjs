// Compiles src/ to dist/ and copies what the compiler does not: migrations and other data files.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
const tsc = spawnSync(
  process.execPath,
  ["node_modules/typescript/bin/tsc", "-p", "tsconfig.build.json"],
  {
    stdio: "inherit",
  },
);
if (tsc.status !== 0) process.exit(tsc.status ?? 1);
cpSync("src", "dist", {
  recursive: true,
  filter: (path) => !path.endsWith(".ts"),
});
if (existsSync("dist/cli/main.js")) chmodSync("dist/cli/main.js", 0o755);
