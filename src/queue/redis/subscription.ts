// Hears what is published on a channel, on a connection of its own. What is published while it is lost
// is missed: whoever listens looks by themselves now and then.

import { withDeadline } from "./deadline.ts";
import { createDriver, type Driver } from "./driver.ts";
import type { RedisTarget } from "./target.ts";

export interface SubscriptionOptions extends RedisTarget {
  readonly connectTimeoutMs: number;
}

const longestPauseMs = 1_000;

export class Subscription {
  readonly #driver: Driver;
  #closed = false;

  private constructor(driver: Driver) {
    this.#driver = driver;
    driver.onError(() => {}); // the client comes back by itself
  }

  static async open(
    options: SubscriptionOptions,
    channel: string,
    hear: (message: string) => void,
  ): Promise<Subscription> {
    let opened: Subscription | undefined;
    const driver = await createDriver({
      ...options,
      reconnect: (attempts) =>
        opened === undefined || opened.#closed
          ? false
          : Math.min(50 * 2 ** attempts, longestPauseMs),
    });
    const subscription = new Subscription(driver);
    try {
      await withDeadline(driver.connect(), options.connectTimeoutMs);
      await withDeadline(driver.subscribe(channel, hear), options.connectTimeoutMs);
    } catch (error) {
      subscription.close();
      throw error;
    }
    opened = subscription;
    return subscription;
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
}
