export interface MarkdownCommand {
  file: string;
  line: number;
  language: "sh" | "ts";
  text: string;
}

export function checkRules(root: string): string[];
export function listCommands(root: string): MarkdownCommand[];
