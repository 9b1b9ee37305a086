// What was handed over is told on a channel that only its worker and whoever may read its offer know: there the
// jobs themselves may go along, and what is said can be believed. See docs/design/handover.md.

import type { HandedClaim } from "../store.ts";

/** 8,000 are the most that a notice may have, its first line included. */
export const mostPerPiece = 7_500;

/** Instead of the id of one job. */
const several = "several";

/** The flush adds place and time, and then what the notice holds. */
export const handedText = ({ leaseId, claimId, jobId }: HandedClaim) =>
  `${leaseId} ${claimId} ${jobId ?? several}`;

interface Piece {
  readonly claim: Pick<HandedClaim, "leaseId" | "claimId" | "jobId">;
  readonly seq: number;
  readonly at: number;
  readonly kind: string;
  /** null: it has none. */
  readonly text: string | null;
}

/**
 * The pieces of one flush come one after the other. Whatever comes of a broken line of them is no claim: its
 * jobs are given back as others that nobody has heard of.
 */
export class HandedPieces {
  #claimId = "";
  #texts: string[] = [];
  #tids = "";

  /** A claim that is whole now. */
  take(notice: string): HandedClaim | null {
    const piece = parsePiece(notice);
    if (piece === null) return null;
    const { claim, seq, at, kind, text } = piece;
    const isTimed = Number.isFinite(at) && Number.isSafeInteger(seq);
    if (claim.jobId !== null) {
      const fresh = { texts: [text ?? ""], tids: null, at, seq };
      return isTimed && text !== null ? { ...claim, fresh } : claim;
    }
    if (claim.claimId !== this.#claimId) this.#begin(claim.claimId);
    if (kind === "jobs") this.#texts.push(text ?? "");
    else this.#tids += text ?? "";
    if (kind !== "last") return null;
    const fresh = { texts: this.#texts, tids: this.#tids, at, seq };
    this.#begin("");
    return isTimed && fresh.texts.length > 0 ? { ...claim, fresh } : claim;
  }

  #begin(claimId: string): void {
    this.#claimId = claimId;
    this.#texts = [];
    this.#tids = "";
  }
}

function parsePiece(notice: string): Piece | null {
  const end = notice.indexOf("\n");
  const head = end === -1 ? notice : notice.slice(0, end);
  const [leaseId = "", claimId = "", which = "", seq, at, kind = ""] = head.split(" ");
  const jobId = which === several ? null : which;
  if (![leaseId, claimId, jobId ?? claimId].every((id) => uuid.test(id))) return null;
  const text = end === -1 ? null : notice.slice(end + 1);
  return { claim: { leaseId, claimId, jobId }, seq: Number(seq), at: Number(at), kind, text };
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
