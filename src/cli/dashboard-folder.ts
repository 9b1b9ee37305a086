import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";

/** Where the built dashboard lies; undefined: this package was built without it. */
export function dashboardFolder(): string | undefined {
  const folder = new URL("../dashboard/", import.meta.url);
  return existsSync(new URL("index.html", folder)) ? fileURLToPath(folder) : undefined;
}
