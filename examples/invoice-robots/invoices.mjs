// What a robot does with one scan.
import { BusinessException } from "millrace/client";

/** A blurred scan is sharp the second time; a negative amount stays one, however often it is read. */
export function readInvoice({ reference, payload, retries }) {
  if (payload.blurred && retries === 0) throw new Error("the scan cannot be read");
  if (payload.net < 0) throw new BusinessException("An invoice cannot be negative.");
  return { reference, gross: Math.round(payload.net * 120) / 100 };
}
