// What comes and goes, in the order it came.
//
// Not a Map or a Set: of their tables, those that were outgrown point to those that came after, so that one which
// lives to be old keeps everything that passes through later ones until the next full collection. Here whoever
// has left points to nobody.

export class Link<T> {
  readonly value: T;
  before: Link<T> | null;
  after: Link<T> | null = null;

  constructor(value: T, before: Link<T> | null) {
    this.value = value;
    this.before = before;
  }
}

export class Line<T> {
  #first: Link<T> | null = null;
  #last: Link<T> | null = null;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get first(): T | undefined {
    return this.#first?.value;
  }

  /** Whoever wants to leave needs the link. */
  add(value: T): Link<T> {
    const link = new Link(value, this.#last);
    if (this.#last === null) this.#first = link;
    else this.#last.after = link;
    this.#last = link;
    this.#length++;
    return link;
  }

  /** Once only. */
  remove(link: Link<T>): void {
    const { before, after } = link;
    if (before === null) this.#first = after;
    else before.after = after;
    if (after === null) this.#last = before;
    else after.before = before;
    link.before = null;
    link.after = null;
    this.#length--;
  }

  all(): T[] {
    const values: T[] = [];
    for (let link = this.#first; link !== null; link = link.after) values.push(link.value);
    return values;
  }
}
