/** Regular expressions that are looked for together, each for a kind. */
export class Shapes {
  readonly #kinds: readonly string[];
  readonly #any: RegExp;

  constructor(shapes: Readonly<Record<string, string>>) {
    this.#kinds = Object.keys(shapes);
    this.#any = new RegExp(this.#kinds.map((kind) => `(${shapes[kind]})`).join("|"));
  }

  kindIn(value: string): string | undefined {
    const match = this.#any.exec(value);
    return match === null ? undefined : this.#kinds[match.indexOf(match[0], 1) - 1];
  }
}
