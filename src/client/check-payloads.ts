import { MillraceError } from "../domain/errors.ts";

/** A hole is no payload: nobody has said that `null` is meant there. */
export function checkPayloads(payloads: readonly unknown[]): void {
  if (!Array.isArray(payloads))
    throw new MillraceError("OPTION_INVALID", "enqueueMany takes a list of payloads.");
  const hole = payloads.findIndex((payload, i) => payload === undefined && !(i in payloads));
  if (hole === -1) return;
  throw new MillraceError("PAYLOAD_INVALID", `The list of payloads has a hole at ${hole}.`);
}
