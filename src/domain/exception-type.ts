// Robots tell application exceptions (try again) from business exceptions (do not). Those who say it in
// their own words are understood too; PostgreSQL's `is_business` follows the same rule for counts.

const fields = ["failure_reason", "reason", "type", "error_message"] as const;

export function isBusinessException(
  type: string | undefined,
  result: unknown,
  message: string | undefined,
): boolean {
  if (type !== undefined) return type === "business";
  const said: unknown[] = [message];
  if (typeof result === "object" && result !== null && !Array.isArray(result)) {
    const own = result as Record<string, unknown>;
    for (const field of fields) if (Object.hasOwn(own, field)) said.push(own[field]);
  }
  return said.some(
    (words) =>
      words !== undefined &&
      words !== null &&
      (typeof words === "string" ? words : JSON.stringify(words))
        .toLowerCase()
        .includes("business"),
  );
}
