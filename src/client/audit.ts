// Is the audit trail whole? Every hash is made again from what its entry says, so this needs no trust in
// the database: whoever kept an earlier head can also tell whether the end was cut off.

import { createHash } from "node:crypto";
import type { AuditHead, AuditLink, AuditStore } from "../store/audit.ts";

export interface AuditVerification {
  readonly ok: boolean;
  readonly entries: number;
  readonly head: AuditHead;
  /** The first entry that is not what it should be. */
  readonly brokenAt: number | null;
  readonly problem: string | null;
}

export type AuditSource = Pick<AuditStore, "links" | "head" | "pruned">;

const batch = 1_000;
const beginning = "00".repeat(32);

export async function verifyAudit(
  audit: AuditSource,
  expected?: AuditHead,
): Promise<AuditVerification> {
  // Read first: what is added meanwhile comes after it.
  const head = await audit.head();
  const pruned = await audit.pruned();
  let last: AuditHead = pruned ?? { no: 0, hash: beginning };
  const start = last.no;
  let seen = expected === undefined ? "" : seenBefore(expected, last);
  const broken = (no: number, problem: string): AuditVerification => ({
    ...{ ok: false, entries: last.no - start, head, brokenAt: no, problem },
  });
  for (let links = await audit.links(start, batch); links.length > 0; ) {
    for (const link of links) {
      const problem = problemOf(link, last);
      if (problem !== null) return broken(last.no + 1, problem);
      last = { no: link.no, hash: link.hash };
      if (link.no === expected?.no) seen = link.hash === expected.hash ? "" : "changed";
      if (link.no === head.no && link.hash !== head.hash)
        return broken(link.no, "it is not the head that the trail says it has");
    }
    links = await audit.links(last.no, batch);
  }
  if (last.no < head.no) return broken(last.no + 1, "the end of the trail is missing");
  if (seen !== "") return broken(expected?.no ?? 0, `the expected head is ${seen}`);
  return { ok: true, entries: last.no - start, head: last, brokenAt: null, problem: null };
}

/** An expected head before the first entry that is kept can be compared only if it is the last that went. */
function seenBefore(expected: AuditHead, start: AuditHead): string {
  if (expected.no === 0) return "";
  if (expected.no > start.no) return "missing";
  if (expected.no < start.no) return "older than what is kept";
  return expected.hash === start.hash ? "" : "changed";
}

function problemOf(link: AuditLink, last: AuditHead): string | null {
  if (link.no !== last.no + 1) return "an entry is missing";
  const text = link.fields.map(lengthAndText).join(",");
  const hash = createHash("sha256").update(Buffer.from(last.hash, "hex")).update(text);
  return hash.digest("hex") === link.hash ? null : "the entry was changed";
}

/** As PostgreSQL's audit_text writes it. */
const lengthAndText = (field: string | null) =>
  field === null ? "-" : `${Buffer.byteLength(field)}:${field}`;
