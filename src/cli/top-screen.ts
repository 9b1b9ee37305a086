// A screen of our own: the other one comes back as it was, whatever ends us.

export type Key = "quit" | "left" | "right" | "up" | "down" | "reverse";

const keys: Readonly<Record<string, Key>> = {
  q: "quit",
  Q: "quit",
  "\u0003": "quit",
  "\u0004": "quit",
  "\u001b": "quit",
  r: "reverse",
  "\u001b[A": "up",
  "\u001b[B": "down",
  "\u001b[C": "right",
  "\u001b[D": "left",
  // The same in application mode.
  "\u001bOA": "up",
  "\u001bOB": "down",
  "\u001bOC": "right",
  "\u001bOD": "left",
};

const enter = "\u001b[?1049h\u001b[?25l\u001b[H\u001b[2J";
const leave = "\u001b[?25h\u001b[?1049l";

export interface ScreenEvents {
  readonly onKey: (key: Key) => void;
  readonly onResize: () => void;
}

export class TopScreen {
  readonly #in: NodeJS.ReadStream;
  readonly #out: NodeJS.WriteStream;
  readonly #remove: (() => void)[] = [];
  #isOpen = false;

  constructor(input: NodeJS.ReadStream, output: NodeJS.WriteStream) {
    this.#in = input;
    this.#out = output;
  }

  open({ onKey, onResize }: ScreenEvents): void {
    this.#isOpen = true;
    const hear = (data: Buffer) => {
      for (const key of keysIn(data.toString("utf8"))) onKey(key);
    };
    const restore = () => this.close();
    this.#in.setRawMode(true);
    this.#in.on("data", hear);
    this.#in.resume();
    this.#out.on("resize", onResize);
    // Also when somebody calls process.exit, or an error ends the process.
    process.on("exit", restore);
    this.#remove.push(() => {
      this.#in.off("data", hear);
      this.#in.setRawMode(false);
      this.#in.pause();
      this.#out.off("resize", onResize);
      process.off("exit", restore);
    });
    this.#out.write(enter);
  }

  get size(): { readonly columns: number; readonly rows: number } {
    return {
      columns: Math.max(20, this.#out.columns ?? 80),
      rows: Math.max(6, this.#out.rows ?? 24),
    };
  }

  draw(lines: readonly string[]): void {
    if (!this.#isOpen) return;
    const text = lines.map((line) => `${line}\u001b[K`).join("\r\n");
    this.#out.write(`\u001b[H${text}\u001b[J`);
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    for (const remove of this.#remove.splice(0)) remove();
    this.#out.write(leave);
  }
}

/** Several may come at once when somebody holds one down. */
function keysIn(text: string): Key[] {
  const words = text.match(/\p{Cc}(?:\[|O)[A-D]|[\s\S]/gu) ?? [];
  return words.map((word) => keys[word]).filter((key) => key !== undefined);
}
