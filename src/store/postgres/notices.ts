// Wake-ups travel as one short text on one channel. Losing one costs latency, never a job.
//
// What was handed over is told on a channel that only its worker and whoever may read its offer know: there
// the job itself may go along, and what is said can be believed.

import type { HandedClaim, Notice, NoticeTexts } from "../store.ts";

export const noticeTexts: NoticeTexts = {
  ready: (queueIds) => `ready ${[...queueIds].join(",")}`,
  late: (queueIds) => `late ${[...queueIds].join(",")}`,
  due: (delayMs) => `due ${Math.round(delayMs)}`,
};

export function parseNotice(text: string): Notice | null {
  const [word, rest = ""] = text.split(" ", 2);
  switch (word) {
    case "ready":
    case "late":
      return { kind: "ready", queueIds: numbers(rest), late: word === "late" };
    case "due":
      return { kind: "due", delayMs: Number(rest) };
    case "cancel":
      return { kind: "cancel", leaseId: rest };
    case "breaker":
      return { kind: "breaker", id: Number(rest) };
    case "queues":
    case "notifications":
    case "triggers":
      return { kind: word };
    default:
      return null;
  }
}

const numbers = (text: string): number[] => (text === "" ? [] : text.split(",").map(Number));

/** The flush adds place and time, and then the job itself if it is short enough. */
export const handedText = ({ leaseId, claimId, jobId }: HandedClaim) =>
  `${leaseId} ${claimId} ${jobId}`;

export function parseHanded(text: string): HandedClaim | null {
  const end = text.indexOf("\n");
  const head = end === -1 ? text : text.slice(0, end);
  const [leaseId = "", claimId = "", jobId = "", seq, at] = head.split(" ");
  if (![leaseId, claimId, jobId].every((id) => uuid.test(id))) return null;
  const claim = { leaseId, claimId, jobId };
  const fresh = { text: text.slice(end + 1), at: Number(at), seq: Number(seq) };
  const isWhole = end !== -1 && Number.isFinite(fresh.at) && Number.isSafeInteger(fresh.seq);
  return isWhole ? { ...claim, fresh } : claim;
}

const uuid = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
