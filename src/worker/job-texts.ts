// Jobs as texts that go with the notice of their handover. See docs/design/handover.md.

import { areLong } from "../store/long-payloads.ts";
import type { NewJob } from "../store/store.ts";

export const idLength = 36;

/** 8,000 are the most that a notice may have, with what the flush adds. */
const mostBytes = 7_700;
const mostLetters = 7_000;

/** One job, whatever it is like; none: it is too long, and has to be read. */
export function jobText({ payload, ...others }: NewJob): string[] {
  if (payload.length > mostLetters) return [];
  const text = `${JSON.stringify(others)}\n${payload}`;
  return Buffer.byteLength(text) > mostBytes ? [] : [text];
}

/** Jobs that differ in id and payload only; null: they do not fit. */
export function jobTexts(jobs: readonly NewJob[], letters = mostLetters): string[] | null {
  const [first] = jobs;
  if (first === undefined) return null;
  const { type, tenant, queueId, weight, maxAttempts } = first;
  const common = JSON.stringify({ type, tenant, queueId, weight, maxAttempts });
  if (areLong(jobs)) return idTexts(jobs, common);
  const texts: string[] = [];
  for (let from = 0; from < jobs.length; ) {
    const to = endOfText(jobs, from, letters - common.length);
    if (to === from) return null;
    const text = textOf(jobs, common, from, to);
    // Letters have up to three bytes.
    if (Buffer.byteLength(text) > mostBytes)
      return letters === mostLetters ? jobTexts(jobs, mostLetters / 3) : null;
    texts.push(text);
    from = to;
  }
  return texts;
}

/** What a worker reads in one go. */
const mostLettersToRead = 2_000_000;

/** Long payloads stay where they are stored, and are read by these ids, in their order. */
function idTexts(jobs: readonly NewJob[], common: string): string[] | null {
  const perText = Math.floor((mostLetters - common.length) / idLength);
  const texts: string[] = [];
  let ids = "";
  let letters = 0;
  let last = "";
  for (const { id, payload } of jobs) {
    letters += payload.length;
    if (id <= last || letters > mostLettersToRead) return null;
    last = id;
    ids += id;
    if (ids.length < perText * idLength && id !== jobs.at(-1)?.id) continue;
    texts.push(`${common}\n${ids}`);
    ids = "";
  }
  return texts;
}

function endOfText(jobs: readonly NewJob[], from: number, letters: number): number {
  let length = 0;
  for (let to = from; to < jobs.length; to++) {
    length += (jobs[to]?.payload.length ?? 0) + idLength + 1;
    if (length > letters) return to;
  }
  return jobs.length;
}

function textOf(jobs: readonly NewJob[], common: string, from: number, to: number): string {
  let ids = "";
  let payloads = "";
  for (let i = from; i < to; i++) {
    const { id, payload } = jobs[i] as NewJob;
    ids += id;
    payloads += i === from ? payload : `,${payload}`;
  }
  return `${common}\n${ids}\n[${payloads}]`;
}
