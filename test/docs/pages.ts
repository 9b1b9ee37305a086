import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type FencedBlock, fencedBlocks } from "../../scripts/markdown.mjs";

const root = join(import.meta.dirname, "..", "..");
const isPage = (path: string) => path.endsWith(".md") && !path.includes("node_modules");

const found = [
  "README.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" }).map((path) =>
    join("docs", path),
  ),
  ...readdirSync(join(root, "examples"), { recursive: true, encoding: "utf8" }).map((path) =>
    join("examples", path),
  ),
].filter(isPage);

export const pages = found.map((file) => ({
  file,
  blocks: fencedBlocks(readFileSync(join(root, file), "utf8")),
}));

/** A page that has its reader keep files: its blocks belong together and are run in their order. */
export const isStory = ({ blocks }: { blocks: readonly FencedBlock[] }) =>
  blocks.some(({ saveAs }) => saveAs !== null);
