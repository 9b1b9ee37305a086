// A process keeps the embedded server alive by one open connection to its keeper. The kernel closes
// that connection however the process ends, so nothing has to be counted, renewed or cleaned up.
// Both sides prove that they know the password; neither sends it.

import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { MillraceError } from "../../domain/errors.ts";
import { longestTimerMs, systemClock } from "../../runtime/clock.ts";
import { isOverWithin } from "../../runtime/is-over-within.ts";
import { type Layout, readIfThere } from "./embedded-layout.ts";

export interface KeeperState {
  readonly pid: number;
  readonly port: number;
  readonly host: string;
}

export interface Membership {
  /** The port of PostgreSQL. */
  readonly port: number;
  /** Process ids of those who were there before us. */
  readonly others: readonly number[];
  /** Settles when the keeper is gone, or when we left. */
  readonly ended: Promise<void>;
  /** Settles after the server has stopped, or does not, if we were the last one, at once otherwise. */
  leave(): Promise<void>;
}

const answerWithinMs = 3_000;

export async function readState(layout: Layout): Promise<KeeperState | undefined> {
  const text = await readIfThere(layout.state);
  try {
    return text === undefined ? undefined : JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Undefined when there is no keeper to join, or one that is about to stop. */
export async function join(layout: Layout): Promise<Membership | undefined> {
  const state = await readState(layout);
  const password = await readIfThere(layout.password);
  if (state === undefined || password === undefined) return undefined;
  const socket = connect({ host: "127.0.0.1", port: state.port });
  const ended = new Promise<void>((done) => socket.once("close", () => done()));
  socket.on("error", () => undefined);
  const messages = new Messages(socket);
  try {
    const admitted = await introduce(messages, password, layout.cluster);
    if (admitted === undefined) return undefined;
    socket.unref();
    return { ...admitted, ended, leave: () => leave(socket) };
  } catch (error) {
    // A keeper whose server did not start is leaving; the folder is free when it has gone.
    socket.end();
    await ended;
    throw error;
  }
}

async function introduce(
  messages: Messages,
  password: string,
  cluster: string,
): Promise<Pick<Membership, "port" | "others"> | undefined> {
  const nonce = randomBytes(16).toString("hex");
  messages.send({ nonce });
  const challenge = await messages.next(answerWithinMs);
  if (
    typeof challenge?.nonce !== "string" ||
    !isProof(challenge.proof, password, `keeper:${nonce}`)
  ) {
    messages.close();
    return undefined;
  }
  const proof = proofOf(password, `holder:${challenge.nonce}`);
  messages.send({ proof, pid: process.pid });
  const answer = await messages.next();
  if (typeof answer?.failed === "string") {
    const advice = `If its data in ${cluster} is damaged, restore that folder from a backup, or move it away to start with an empty database.`;
    throw new MillraceError("EMBEDDED_UNAVAILABLE", `${answer.failed}\n${advice}`);
  }
  if (typeof answer?.ready !== "number") return undefined;
  const others = Array.isArray(answer.others) ? answer.others.map(Number) : [];
  return { port: answer.ready, others };
}

/** A server that stands still is stopped by its keeper when it can be, whether or not somebody waits. */
const leaveWithinMs = 10_000;

async function leave(socket: Socket): Promise<void> {
  if (socket.closed) return;
  socket.ref();
  const closed = once(socket, "close");
  socket.end();
  if (!(await isOverWithin(closed, leaveWithinMs, systemClock))) socket.unref();
}

function proofOf(password: string, text: string): string {
  return createHmac("sha256", password).update(text).digest("hex");
}

function isProof(given: unknown, password: string, text: string): boolean {
  const expected = Buffer.from(proofOf(password, text));
  const actual = Buffer.from(String(given));
  return actual.length === expected.length && timingSafeEqual(actual, expected);
}

/** One JSON value per line. `next` gives undefined when the other side is gone. */
class Messages {
  readonly #socket: Socket;
  #text = "";
  #wake: () => void = () => undefined;

  constructor(socket: Socket) {
    this.#socket = socket;
    socket.setEncoding("utf8");
    socket.on("data", (chunk: string) => {
      this.#text += chunk;
      this.#wake();
    });
    socket.once("close", () => this.#wake());
  }

  send(message: object) {
    this.#socket.write(`${JSON.stringify(message)}\n`);
  }

  close() {
    this.#socket.destroy();
  }

  async next(withinMs?: number): Promise<Record<string, unknown> | undefined> {
    const timer = setTimeout(() => this.#socket.destroy(), withinMs ?? longestTimerMs);
    try {
      while (!this.#text.includes("\n")) {
        if (this.#socket.destroyed) return undefined;
        await new Promise<void>((wake) => {
          this.#wake = wake;
        });
      }
    } finally {
      clearTimeout(timer);
    }
    const end = this.#text.indexOf("\n");
    const line = this.#text.slice(0, end);
    this.#text = this.#text.slice(end + 1);
    return parse(line);
  }
}

function parse(line: string): Record<string, unknown> | undefined {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}
