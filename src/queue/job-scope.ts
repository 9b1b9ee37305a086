// What a handler needs for one job only (a session, a transaction, a temporary folder): made before it
// runs, released after it, however it ended.

/** Released by whichever of these it has; without any there is nothing to release. */
export interface Releasable {
  [Symbol.asyncDispose]?(): PromiseLike<void>;
  [Symbol.dispose]?(): void;
  dispose?(): unknown;
  release?(): unknown;
}

export async function releaseScope(scope: unknown): Promise<void> {
  if ((typeof scope !== "object" && typeof scope !== "function") || scope === null) return;
  const resource = scope as Releasable;
  if (resource[Symbol.asyncDispose] !== undefined) await resource[Symbol.asyncDispose]?.();
  else if (resource[Symbol.dispose] !== undefined) resource[Symbol.dispose]?.();
  else if (typeof resource.dispose === "function") await resource.dispose();
  else if (typeof resource.release === "function") await resource.release();
}
