/** Something that runs. Both calls are idempotent; stop resolves when nothing of it is left running. */
export interface Service {
  readonly name: string;
  start(): Promise<void>;
  stop(): Promise<void>;
}
