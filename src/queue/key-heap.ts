// A heap of numbers, the smallest key first. Keys and values lie in typed arrays and each node has four
// children: a million pushes and pops touch little memory and leave nothing to collect.

const firstCapacity = 1_024;

export class KeyHeap {
  #keys = new Float64Array(firstCapacity);
  #values = new Float64Array(firstCapacity);
  #size = 0;

  get size(): number {
    return this.#size;
  }

  /** The smallest key; Infinity when there is none. */
  get firstKey(): number {
    return this.#size === 0 ? Number.POSITIVE_INFINITY : (this.#keys[0] as number);
  }

  push(key: number, value: number): void {
    if (this.#size === this.#keys.length) this.#grow();
    const keys = this.#keys;
    const values = this.#values;
    let at = this.#size++;
    while (at > 0) {
      const parent = (at - 1) >> 2;
      const parentKey = keys[parent] as number;
      if (parentKey <= key) break;
      keys[at] = parentKey;
      values[at] = values[parent] as number;
      at = parent;
    }
    keys[at] = key;
    values[at] = value;
  }

  /** Takes the value with the smallest key; -1 when there is none. */
  pop(): number {
    if (this.#size === 0) return -1;
    const value = this.#values[0] as number;
    const last = --this.#size;
    if (last > 0) this.#sink(this.#keys[last] as number, this.#values[last] as number, last);
    return value;
  }

  clear(): void {
    this.#size = 0;
    this.#keys = new Float64Array(firstCapacity);
    this.#values = new Float64Array(firstCapacity);
  }

  /** Lets an entry sink from the top, in a heap of `size`. */
  #sink(key: number, value: number, size: number): void {
    const keys = this.#keys;
    const values = this.#values;
    let at = 0;
    for (;;) {
      const first = (at << 2) + 1;
      if (first >= size) break;
      const end = Math.min(first + 4, size);
      let least = first;
      let leastKey = keys[first] as number;
      for (let child = first + 1; child < end; child++) {
        const childKey = keys[child] as number;
        if (childKey < leastKey) {
          least = child;
          leastKey = childKey;
        }
      }
      if (leastKey >= key) break;
      keys[at] = leastKey;
      values[at] = values[least] as number;
      at = least;
    }
    keys[at] = key;
    values[at] = value;
  }

  #grow(): void {
    const keys = new Float64Array(this.#keys.length * 2);
    const values = new Float64Array(this.#keys.length * 2);
    keys.set(this.#keys);
    values.set(this.#values);
    this.#keys = keys;
    this.#values = values;
  }
}
