// House rules that a linter does not know. Each rule sees one file and returns `{ line, problem }`s.
import { existsSync, readFileSync } from "node:fs";
import { dirname, extname, join, relative, resolve } from "node:path";
import { runChecker } from "./checker.mjs";
import { fencedBlocks, links, withoutCode } from "./markdown.mjs";
import { listFiles } from "./source-files.mjs";
import { lineAt, maskSource } from "./source-text.mjs";

const longestFile = 300;
const generated = new Set(["src/store/postgres/schema.sql"]);
const scriptTypes = new Set([".ts", ".mts", ".tsx", ".js", ".mjs", ".cjs"]);
const sourceTypes = new Set([...scriptTypes, ".sql", ".lua", ".sh", ".css"]);
const ownFolders = /^(?:src|test|scripts|bench|dashboard)\//;
const noteToSelf = /\b(?:TODO|FIXME)\b/g;

const codeRules = [
  {
    where: (file) => file.startsWith("src/") && file !== "src/config.ts",
    pattern: /\bprocess\s*(?:\.|\?\.)\s*env\b|\benv\b[^;=]*\}\s*=\s*process\b/g,
    problem: "process.env is read in src/config.ts only",
  },
  {
    where: (file) => file.startsWith("src/domain/"),
    pattern: /\bDate\.now\b|\bnew Date(?:\(\s*\)|(?!\w|\s*\())|\bperformance\.now\b/g,
    problem: "domain is handed `now`, it does not ask for the time",
  },
  {
    where: (file) => file.startsWith("src/domain/"),
    pattern: /\bMath\.random\b|\brandomUUID\b|\bgetRandomValues\b/g,
    problem: "domain is handed `random`, it does not make its own",
  },
  {
    where: (file) => file.startsWith("test/"),
    pattern: /\b(?:it|test|describe|suite)(?:\.\w+)*\.(?:skip|only|todo)\b/g,
    problem: "no skipped, focused or promised tests",
  },
  {
    where: (file) => /^(?:src(?!\/cli\/)|dashboard)\//.test(file),
    pattern: /(?<![.\w$])console\s*\./g,
    problem: "console belongs to src/cli; elsewhere emit an event",
  },
];

/** Returns one line per broken rule. */
export function checkRules(root) {
  const problems = [];
  for (const file of listFiles(root)) {
    const rules = rulesFor(file);
    if (rules.length === 0) continue;
    const text = readFileSync(join(root, file), "utf8");
    for (const rule of rules) {
      for (const { line, problem } of rule(file, text, root)) {
        problems.push(`${file}:${line}: ${problem}`);
      }
    }
  }
  return problems;
}

/** The `sh` and `ts` blocks of every Markdown file, for a test that tries them. */
export function listCommands(root) {
  const files = listFiles(root).filter((file) => file.endsWith(".md"));
  return files.flatMap((file) =>
    fencedBlocks(readFileSync(join(root, file), "utf8"))
      .filter(({ language }) => language === "sh" || language === "ts")
      .map(({ line, language, text }) => ({ file, line, language, text })),
  );
}

function rulesFor(file) {
  const type = extname(file);
  if (/(?:^|\/)(?:package-lock\.json|\.npmrc)$/.test(file)) return [namesNoRegistry];
  if (type === ".md") return [linksResolve, markdownHasNoNotes];
  if (!ownFolders.test(file) || !sourceTypes.has(type) || generated.has(file)) return [];
  return scriptTypes.has(type) ? [isShort, codeIsClean] : [isShort, textHasNoNotes];
}

function isShort(_file, text) {
  const count = text.replace(/\n$/, "").split("\n").length;
  if (count <= longestFile) return [];
  return [{ line: count, problem: `${count} lines; a file has at most ${longestFile}` }];
}

function codeIsClean(file, text) {
  const { code, comments } = maskSource(text);
  const broken = codeRules
    .filter((rule) => rule.where(file))
    .flatMap(({ pattern, problem }) =>
      [...code.matchAll(pattern)].map((match) => ({ line: lineAt(code, match.index), problem })),
    );
  const notes = comments.flatMap((comment) =>
    textHasNoNotes(file, comment.text).map(({ line, problem }) => ({
      line: lineAt(text, comment.at) + line - 1,
      problem,
    })),
  );
  return [...broken, ...notes];
}

function textHasNoNotes(_file, text) {
  const problem = "no notes to self: do it or open an issue";
  return [...text.matchAll(noteToSelf)].map((match) => ({
    line: lineAt(text, match.index),
    problem,
  }));
}

const markdownHasNoNotes = (file, text) => textHasNoNotes(file, withoutCode(text));

function namesNoRegistry(_file, text) {
  const host = /"resolved": "(?:https?|git)|\bregistry\.[\w-]+\.\w+|^[^#\n]*registry\s*=/gm;
  const problem = "a registry host is named; npm's omit-lockfile-registry-resolved leaves it out";
  return [...text.matchAll(host)].map((match) => ({ line: lineAt(text, match.index), problem }));
}

function linksResolve(file, text, root) {
  return links(text)
    .filter(({ target }) => !/^(?:[a-z][a-z+.-]*:|#)/i.test(target))
    .filter(({ target }) => !pointsToFile(root, file, decodeURI(target.replace(/[#?].*$/, ""))))
    .map(({ line, target }) => ({ line, problem: `dead link: ${target}` }));
}

function pointsToFile(root, file, target) {
  const folder = target.startsWith("/") ? root : join(root, dirname(file));
  const path = resolve(folder, `./${target}`);
  return !relative(root, path).startsWith("..") && existsSync(path);
}

runChecker(import.meta.url, "Checks the house rules that a linter does not know.", checkRules, {
  "list-commands": {
    help: "print the sh and ts blocks of all Markdown files as JSON",
    run: (root) => console.log(JSON.stringify(listCommands(root), null, 2)),
  },
});
