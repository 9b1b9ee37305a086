/** A small seeded generator (mulberry32). Each actor has its own, or one's luck would shift another's. */
export function randomOf(seed: number, actor: string): () => number {
  let state = seed >>> 0;
  for (const char of actor) state = (Math.imul(state ^ char.charCodeAt(0), 0x9e3779b1) >>> 0) + 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}
