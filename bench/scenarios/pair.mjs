// Two conditions of Millrace measured in turns, at least seven times each.
import { interleave } from "../rounds.mjs";

export const minimumPairs = 7;
export const system = "millrace";

export async function runPair(context, entries) {
  if (!context.systems.includes(system)) return [];
  const pairs = Math.max(context.tiny ? 2 : minimumPairs, context.rounds);
  return interleave(
    context,
    entries.map((entry) => ({ system, ...entry })),
    pairs,
  );
}
