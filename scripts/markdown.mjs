// Reads the little of Markdown that the checks need: fenced code blocks and links.

const fenceStart = /^\s*(?:[-*>]\s+)?(`{3,}|~{3,})\s*([\w-]*)(?:\s+file=(\S+))?/;

/**
 * Fenced blocks as `{ line, language, saveAs, text }`; the line is that of the opening fence. `saveAs` is
 * the file in which the reader should keep the block (```js file=jobs.mjs), or null.
 */
export function fencedBlocks(markdown) {
  const blocks = [];
  let open = null;
  for (const [index, line] of markdown.split("\n").entries()) {
    const fence = fenceStart.exec(line);
    if (open === null && fence) {
      const [, mark, language, saveAs = null] = fence;
      open = { line: index + 1, language, saveAs, mark, lines: [] };
    } else if (open && line.trim().startsWith(open.mark) && /^[`~]+$/.test(line.trim())) {
      const { line: at, language, saveAs, lines } = open;
      blocks.push({ line: at, language, saveAs, text: lines.join("\n") });
      open = null;
    } else if (open) {
      open.lines.push(line);
    }
  }
  return blocks;
}

/** Link and image targets outside code, as `{ line, target }`. */
export function links(markdown) {
  const found = [];
  for (const [index, line] of withoutCode(markdown).split("\n").entries()) {
    const targets = [
      ...line.matchAll(/\]\(\s*<?([^)\s>]+)>?(?:\s+["'(][^)]*)?\)/g),
      ...line.matchAll(/^\s*\[[^\]]+\]:\s*<?([^\s>]+)>?/g),
      ...line.matchAll(/\b(?:src|srcset|href)="([^"\s]+)"/g),
    ];
    for (const [, target] of targets) found.push({ line: index + 1, target });
  }
  return found;
}

/** The same text with code blocks and inline code blanked, lines kept. */
export function withoutCode(markdown) {
  const lines = markdown.split("\n");
  for (const { line, text } of fencedBlocks(markdown)) {
    lines.fill("", line - 1, line + text.split("\n").length);
  }
  return lines.join("\n").replace(/(`+)(?!`)[^\n]*?[^`\n]\1(?!`)/g, "");
}
