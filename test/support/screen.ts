// A small terminal: what the sequences that we send do to a screen. One that it does not know is an error,
// so that nobody sends what was never looked at.

const sequence = /^\p{Cc}\[([?]?)([\d;]*)([A-Za-z])/u;

export class Screen {
  columns: number;
  rows: number;
  #cells: string[][] = [];
  #saved: string[][] | null = null;
  #row = 0;
  #column = 0;
  #left = "";
  cursorShown = true;

  constructor(columns: number, rows: number) {
    this.columns = columns;
    this.rows = rows;
    this.#clear();
  }

  /** Is it the other screen, the one that a program has for itself? */
  get isAlternate(): boolean {
    return this.#saved !== null;
  }

  get lines(): string[] {
    return this.#cells.map((line) => line.join("").trimEnd());
  }

  get text(): string {
    return this.lines.join("\n").trimEnd();
  }

  resize(columns: number, rows: number): void {
    this.columns = columns;
    this.rows = rows;
    const old = this.#cells;
    this.#clear();
    for (const [at, line] of old.slice(0, rows).entries())
      this.#cells[at] = [...line, ...blank(columns)].slice(0, columns);
  }

  write(text: string): void {
    let rest = this.#left + text;
    while (rest !== "") {
      if (rest.startsWith("\u001b")) {
        const found = sequence.exec(rest);
        if (found === null) {
          if (rest.length > 30)
            throw new Error(`unknown sequence ${JSON.stringify(rest.slice(0, 12))}`);
          break;
        }
        this.#obey(found[1] ?? "", found[2] ?? "", found[3] ?? "");
        rest = rest.slice(found[0].length);
        continue;
      }
      const [letter = ""] = rest;
      this.#put(letter);
      rest = rest.slice(letter.length);
    }
    this.#left = rest;
  }

  #obey(mark: string, numbers: string, verb: string): void {
    const key = `${mark}${numbers}${verb}`;
    if (verb === "m") return;
    if (key === "?1049h") {
      this.#saved = this.#cells;
      this.#clear();
    } else if (key === "?1049l") {
      this.#cells = this.#saved ?? this.#cells;
      this.#saved = null;
    } else if (key === "?25h" || key === "?25l") this.cursorShown = verb === "h";
    else if (key === "H") [this.#row, this.#column] = [0, 0];
    else if (key === "2J") this.#clear();
    else if (key === "J") {
      this.#erase(this.#row, this.#column);
      for (let row = this.#row + 1; row < this.rows; row++) this.#erase(row, 0);
    } else if (key === "K") this.#erase(this.#row, this.#column);
    else if (key === "2K") this.#erase(this.#row, 0);
    // What readline asks with: to a column, and clear from there.
    else if (verb === "G") this.#column = Number(numbers || "1") - 1;
    else if (key === "0J") this.#obey("", "", "J");
    else if (key === "?2004h" || key === "?2004l") return;
    else throw new Error(`unknown sequence ${JSON.stringify(key)}`);
  }

  #put(letter: string): void {
    if (letter === "\r") this.#column = 0;
    else if (letter === "\n") this.#feed();
    else if (letter === "\u0007") return;
    else {
      if (this.#column >= this.columns) {
        this.#column = 0;
        this.#feed();
      }
      const line = this.#cells[this.#row];
      if (line !== undefined) line[this.#column] = letter;
      this.#column++;
    }
  }

  #feed(): void {
    if (this.#row < this.rows - 1) this.#row++;
    else {
      this.#cells.shift();
      this.#cells.push(blank(this.columns));
    }
  }

  #erase(row: number, from: number): void {
    this.#cells[row] = [...(this.#cells[row] ?? []).slice(0, from), ...blank(this.columns)].slice(
      0,
      this.columns,
    );
  }

  #clear(): void {
    this.#cells = Array.from({ length: this.rows }, () => blank(this.columns));
  }
}

const blank = (columns: number): string[] => Array<string>(columns).fill(" ");
