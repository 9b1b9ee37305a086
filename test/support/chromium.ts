// Chromium: the one on the PATH; else installed (as root, on Debian) or unpacked (not as root).

import { existsSync } from "node:fs";
import { delimiter, join } from "node:path";
import { type Browser, chromium } from "playwright-core";
import { installPackages, type Unpacked, unpackPackages } from "./debian.ts";

const names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

function onPath(): Unpacked | undefined {
  const folders = (process.env.PATH ?? "").split(delimiter);
  const paths = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  const program = paths.find((one) => existsSync(one));
  return program === undefined ? undefined : { program, env: {} };
}

async function findChromium(): Promise<Unpacked> {
  const there = onPath();
  if (there !== undefined) return there;
  await installPackages("chromium", "fonts-liberation");
  const found = onPath() ?? (await unpack());
  if (found !== undefined) return found;
  throw new Error(
    "These tests need Chromium. Install it so that chromium is on the PATH, for example with: " +
      "apt-get install chromium, or brew install --cask chromium",
  );
}

const unpack = () =>
  unpackPackages("chromium", "usr/lib/chromium/chromium", ["chromium", "chromium-common"], {
    needs: true,
  });

export async function startBrowser(): Promise<Browser> {
  const { program, env } = await findChromium();
  return chromium.launch({
    executablePath: program,
    env: { ...(process.env as Record<string, string>), ...env },
    args: [
      ...["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"],
      ...["--disable-background-networking", "--disable-component-update"],
    ],
  });
}
