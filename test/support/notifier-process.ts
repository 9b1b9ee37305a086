// Real processes that run the notifier (test/processes/notifier.mjs).

import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { NotificationOptions, Options } from "../../src/index.ts";
import { until } from "./until.ts";

interface Message {
  readonly event: string;
  readonly reason?: string;
  readonly delivery?: string;
}

const program = fileURLToPath(new URL("../processes/notifier.mjs", import.meta.url));

export class NotifierProcess {
  readonly messages: Message[] = [];
  readonly #child: ChildProcess;

  constructor(
    options: { readonly connect: Options; readonly start?: NotificationOptions },
    env: Readonly<Record<string, string>> = {},
  ) {
    this.#child = fork(program, [JSON.stringify({ start: {}, ...options })], {
      execArgv: [],
      env: { ...process.env, ...env },
    });
    this.#child.on("message", (message) => this.messages.push(message as Message));
  }

  of(event: string): Message[] {
    return this.messages.filter((message) => message.event === event);
  }

  async says(event: string): Promise<Message> {
    return until(`the notifier says ${event}`, () => this.of(event)[0] ?? this.#mustLive());
  }

  async kill(): Promise<void> {
    if (this.#exited) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }

  get #exited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #mustLive(): undefined {
    if (this.#exited) throw new Error(`the notifier ended with ${this.#child.exitCode}`);
  }
}
