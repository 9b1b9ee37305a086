// Hears what is published on a channel, on a connection of its own. What is published while it is lost
// is missed: whoever listens looks by themselves now and then.

import { createDriver, type Driver } from "./driver.ts";
import type { RedisTarget } from "./target.ts";

export interface SubscriptionOptions extends RedisTarget {
  readonly connectTimeoutMs: number;
}

const longestPauseMs = 1_000;

export class Subscription {
  readonly #driver: Driver;
  readonly #listeners = new Set<(message: string) => void>();
  #closed = false;

  private constructor(driver: Driver) {
    this.#driver = driver;
    driver.onError(() => {}); // the client comes back by itself
  }

  static async open(options: SubscriptionOptions, channel: string): Promise<Subscription> {
    let opened: Subscription | undefined;
    const driver = await createDriver({
      ...options,
      reconnect: (attempts) =>
        opened === undefined || opened.#closed
          ? false
          : Math.min(50 * 2 ** attempts, longestPauseMs),
    });
    const subscription = new Subscription(driver);
    await driver.connect();
    opened = subscription;
    await driver.subscribe(channel, (message) => subscription.#hear(message));
    return subscription;
  }

  onMessage(listener: (message: string) => void): void {
    this.#listeners.add(listener);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    try {
      this.#driver.destroy();
    } catch {
      // It was not open.
    }
  }

  #hear(message: string): void {
    for (const listener of this.#listeners) listener(message);
  }
}
