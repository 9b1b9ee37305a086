// Calls of one tick become one call. Each caller gets its own answer, or the error of them all.

interface Waiting<Q, A> {
  readonly question: Q;
  readonly resolve: (answer: A) => void;
  readonly reject: (error: unknown) => void;
}

export interface BatcherOptions<Q, A> {
  readonly ask: (questions: readonly Q[]) => Promise<readonly A[]>;
  /** A batch is sent when it weighs this much; the rest of the tick forms the next one. */
  readonly most: number;
  readonly weigh?: (question: Q) => number;
}

export class TickBatcher<Q, A> {
  readonly #options: BatcherOptions<Q, A>;
  #waiting: Waiting<Q, A>[] = [];
  #weight = 0;

  constructor(options: BatcherOptions<Q, A>) {
    this.#options = options;
  }

  ask(question: Q): Promise<A> {
    return new Promise((resolve, reject) => {
      // The next tick comes after the promises of this one, so that callers woken together meet again.
      if (this.#waiting.length === 0) process.nextTick(() => this.#flush());
      this.#waiting.push({ question, resolve, reject });
      this.#weight += this.#options.weigh?.(question) ?? 1;
      if (this.#weight >= this.#options.most) this.#flush();
    });
  }

  #flush(): void {
    const batch = this.#waiting;
    if (batch.length === 0) return;
    this.#waiting = [];
    this.#weight = 0;
    this.#options.ask(batch.map(({ question }) => question)).then(
      (answers) => {
        for (let i = 0; i < batch.length; i++) batch[i]?.resolve(answers[i] as A);
      },
      (error) => {
        for (const { reject } of batch) reject(error);
      },
    );
  }
}
