// Compiles src/ to dist/, copies what the compiler does not (migrations and other data files), and
// builds the dashboard into dist/dashboard.
import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, rmSync } from "node:fs";

rmSync("dist", { recursive: true, force: true });
run("typescript/bin/tsc", "-p", "tsconfig.build.json");
cpSync("src", "dist", {
  recursive: true,
  filter: (path) => !path.endsWith(".ts"),
});
if (existsSync("dist/cli/main.js")) chmodSync("dist/cli/main.js", 0o755);
run("vite/bin/vite.js", "build", "--config", "dashboard/vite.config.ts", "--logLevel", "warn");

function run(tool, ...args) {
  const { status } = spawnSync(process.execPath, [`node_modules/${tool}`, ...args], {
    stdio: "inherit",
  });
  if (status !== 0) process.exit(status ?? 1);
}
