/**
 * So much of something may be in use at once. Who wants more waits in line, and the first in line is served first, so that
 * a large claim is not passed over for ever by small ones. A claim above the limit is served when nothing else is in use.
 */
export interface Claim {
  release(): void;
}

interface Waiting {
  readonly amount: number;
  readonly serve: (claim: Claim) => void;
}

export class Budget {
  readonly #limit: () => number;
  #used = 0;
  #line: Waiting[] = [];

  constructor(limit: () => number) {
    this.#limit = limit;
  }

  get used(): number {
    return this.#used;
  }

  /** Waits for as long as it takes. The claim must be released. */
  async take(amount: number): Promise<Claim> {
    return new Promise((serve) => {
      this.#line.push({ amount, serve });
      this.#serveLine();
    });
  }

  /** Waits for so long. @returns undefined when the time is over */
  async takeWithin(amount: number, patienceMs: number): Promise<Claim | undefined> {
    return new Promise((resolve) => {
      const waiting: Waiting = {
        amount,
        serve: (claim) => {
          clearTimeout(timer);
          resolve(claim);
        },
      };
      const timer = setTimeout(() => {
        this.#line = this.#line.filter((other) => other !== waiting);
        resolve(undefined);
        // It may have been all that others waited behind.
        this.#serveLine();
      }, patienceMs);
      this.#line.push(waiting);
      this.#serveLine();
    });
  }

  #serveLine(): void {
    for (let first = this.#line[0]; first && this.#hasRoom(first.amount); first = this.#line[0]) {
      this.#line.shift();
      this.#used += first.amount;
      first.serve(this.#claim(first.amount));
    }
  }

  #hasRoom(amount: number): boolean {
    return this.#used === 0 || this.#used + amount <= this.#limit();
  }

  #claim(amount: number): Claim {
    let held = true;
    return {
      release: () => {
        if (!held) throw new Error('a claim on a budget is released twice');
        held = false;
        this.#used -= amount;
        this.#serveLine();
      },
    };
  }
}
