// A connection of the driver's that leaves no socket open when it cannot be made. Where it is the driver
// that gives up, as without a password, it says so and keeps the socket, and that keeps the process.

import pg from "pg";

type Told = Parameters<pg.Client["connect"]>[0];

export class Client extends pg.Client {
  override connect(): Promise<pg.Client>;
  override connect(told: Told): void;
  override connect(told?: Told): Promise<pg.Client> | undefined {
    if (told === undefined) return this.#connected();
    const tell = told as (error: Error | null, client: pg.Client) => void;
    // Not later: until it is told, the pool does not listen to what else may befall the connection.
    super.connect((error: Error | null) => {
      if (error !== null) destroy(this);
      tell(error, this);
    });
    return undefined;
  }

  async #connected(): Promise<pg.Client> {
    try {
      await super.connect();
      return this;
    } catch (error) {
      destroy(this);
      throw error;
    }
  }
}

/** end() waits for the server; a broken one may never answer. */
export function destroy(client: pg.Client): void {
  (
    client as unknown as { connection: { stream: { destroy(): void } } }
  ).connection.stream.destroy();
}
