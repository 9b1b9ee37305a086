// The lanes of keys, by tenant. A hash for every job would be a good part of what an enqueue costs, and keys
// come again and again.

import { createHash } from "node:crypto";
import { laneOf } from "../domain/lane.ts";

const mostKnown = 20_000;

export class LaneNumbers {
  readonly #known = { ordered: new Map<string, number>(), limited: new Map<string, number>() };

  of(tenant: string, key: string, kind: "ordered" | "limited"): number {
    const known = this.#known[kind];
    const name = `${tenant}\n${key}`;
    const found = known.get(name);
    if (found !== undefined) return found;
    const lane = laneOf(createHash("sha256").update(name).digest("hex"), kind);
    if (known.size >= mostKnown) known.clear();
    known.set(name, lane);
    return lane;
  }
}
