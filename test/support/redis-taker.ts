import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { RedisQueueOptions } from "../../src/queue/redis-queue.ts";

const program = fileURLToPath(new URL("./redis-taker.mjs", import.meta.url));

/** A real process that takes what is ready, and keeps it. */
export class TakerProcess {
  readonly #child: ChildProcess;

  constructor(options: RedisQueueOptions) {
    this.#child = fork(program, [JSON.stringify(options)], { execArgv: [] });
  }

  async taken(): Promise<string[]> {
    const [{ taken }] = await once(this.#child, "message");
    return taken;
  }

  async ack(): Promise<boolean[]> {
    const answer = once(this.#child, "message");
    this.#child.send("ack");
    const [{ acked }] = await answer;
    return acked;
  }

  signal(name: NodeJS.Signals): void {
    this.#child.kill(name);
  }

  async end(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, "exit");
    this.#child.kill("SIGKILL");
    await exited;
  }
}
