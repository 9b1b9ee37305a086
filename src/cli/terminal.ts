// Where the command line writes. Results go to standard output; what is said about them, to standard
// error when somebody reads the results by program. A live line is rewritten in place.

import { styleText } from "node:util";
import type { TerminalSettings } from "../config.ts";

type Style = Parameters<typeof styleText>[0];

export class Terminal {
  readonly settings: TerminalSettings;
  readonly #out: NodeJS.WriteStream;
  readonly #err: NodeJS.WriteStream;
  #live = "";

  constructor(settings: TerminalSettings, out: NodeJS.WriteStream, err: NodeJS.WriteStream) {
    this.settings = settings;
    this.#out = out;
    this.#err = err;
  }

  get isInteractive(): boolean {
    return this.#out.isTTY === true;
  }

  get columns(): number {
    return this.#out.columns ?? 80;
  }

  style(style: Style, text: string): string {
    return this.isInteractive && this.settings.colour
      ? styleText(style, text, { validateStream: false })
      : text;
  }

  print(text: string): void {
    this.#out.write(`${this.#clear()}${text}\n${this.#live}`);
  }

  printError(text: string): void {
    if (this.#live !== "") this.#out.write(this.#clear());
    this.#err.write(`${text}\n`);
    if (this.#live !== "") this.#out.write(this.#live);
  }

  /** Replaces the line that is being rewritten. The text must fit into one line. */
  showLive(text: string): void {
    const clear = this.#clear();
    this.#live = text;
    this.#out.write(`${clear}${text}`);
  }

  /** The live line stays as it is; what comes next stands below it. */
  endLive(): void {
    if (this.#live !== "") this.#out.write("\n");
    this.#live = "";
  }

  /** Whoever read our output has gone. */
  onClosed(listener: () => void): void {
    this.#out.on("error", listener);
    this.#err.on("error", () => undefined);
  }

  #clear(): string {
    return this.#live === "" ? "" : "\r\u001b[2K";
  }
}
