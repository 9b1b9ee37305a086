// When a process that is at work vacuums the hot tables.

const everyJobs = 50_000;
/** Of a deep queue's rows: a vacuum reads all of its indexes, whatever there is to clean. */
const share = 0.2;

export class VacuumPace {
  readonly #rows: () => Promise<number>;
  #lookedAt = 0;
  #vacuumedAt = 0;

  /** `rows`: about how many jobs are ready or running; asked for now and then. */
  constructor(rows: () => Promise<number>) {
    this.#rows = rows;
  }

  /** After so many jobs; who is told so does it now. */
  async isDue(settled: number): Promise<boolean> {
    if (settled - this.#lookedAt < everyJobs) return false;
    this.#lookedAt = settled;
    if (settled - this.#vacuumedAt < share * (await this.#rows())) return false;
    this.#vacuumedAt = settled;
    return true;
  }
}
