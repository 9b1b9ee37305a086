// Wake-ups travel as one short text on one channel. Losing one costs latency, never a job.

import type { Notice, NoticeTexts } from "../store.ts";

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
