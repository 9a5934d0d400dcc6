/** For tests: work that stops before each of its calls until it is told to go on. */
import type { Statement, Warehouse } from '@meterline/warehouse';

type Pause = () => Promise<void>;

export class Actor {
  #resume: () => void = () => undefined;
  #stopped: Promise<void>;
  #tellStopped: () => void = () => undefined;
  readonly #ended: Promise<void>;
  #hasEnded = false;

  constructor(work: (pause: Pause) => Promise<void>) {
    this.#stopped = this.#nextStop();
    this.#ended = work(() => this.#pause()).finally(() => {
      this.#hasEnded = true;
      this.#tellStopped();
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Lets it make one call; resolves when it stops before the next one, or has ended. */
  async advance(): Promise<void> {
    await this.#stopped;
    if (this.#hasEnded) return this.#ended;
    const next = this.#nextStop();
    this.#stopped = next;
    this.#resume();
    await next;
    if (this.#hasEnded) await this.#ended;
  }

  async finish(): Promise<void> {
    do await this.advance();
    while (!this.#hasEnded);
  }

  #pause(): Promise<void> {
    return new Promise((resolve) => {
      this.#resume = resolve;
      this.#tellStopped();
    });
  }

  #nextStop(): Promise<void> {
    return new Promise((resolve) => {
      this.#tellStopped = resolve;
    });
  }
}

/** The warehouse, pausing before each statement of these kinds, with the statement's name. */
export function pausing(
  warehouse: Warehouse,
  pause: (name: string) => Promise<void>,
  kinds: readonly ('read' | 'run')[] = ['read', 'run'],
): Warehouse {
  const before = async (kind: 'read' | 'run', { name }: Statement) => {
    if (kinds.includes(kind)) await pause(name);
  };
  return {
    read: async (statement, row) => {
      await before('read', statement);
      return warehouse.read(statement, row);
    },
    run: async (statement, body) => {
      await before('run', statement);
      return warehouse.run(statement, body);
    },
    ping: () => warehouse.ping(),
    close: () => warehouse.close(),
  };
}

/**
 * Every order in which actor 0 can make `first` calls and actor 1 `second`, with at most so many changes from one actor to
 * the other. What goes wrong between two actors mostly does so with few changes: each stops at the wrong moment once or
 * twice. (Musuvathi and Qadeer, "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", 2007.)
 */
export function* orders(first: number, second: number, changes: number, last?: number): Generator<number[]> {
  if (first === 0 && second === 0) yield [];
  for (const [actor, calls] of [first, second].entries()) {
    const left = last === undefined || last === actor ? changes : changes - 1;
    if (calls === 0 || left < 0) continue;
    const rest = actor === 0 ? orders(first - 1, second, left, 0) : orders(first, second - 1, left, 1);
    for (const order of rest) yield [actor, ...order];
  }
}
