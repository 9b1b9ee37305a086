/**
 * Handlers throw anything, also what throws again when it is looked at (a getter, a revoked proxy).
 * Answers what was thrown if it can be looked at, and an Error that says so otherwise.
 */
export function tameError(thrown: unknown): unknown {
  try {
    if (typeof thrown !== "object" || thrown === null) return thrown;
    const { name, message, stack, code } = thrown as Record<string, unknown>;
    void (thrown instanceof Error && [name, message, stack, code]);
    return thrown;
  } catch (cause) {
    return new Error("The handler threw something that cannot be looked at.", { cause });
  }
}
