export function fencedBlocks(markdown: string): { line: number; language: string; text: string }[];
