/** For tests: runs the statements of several tasks in every possible order. A task stops before each statement. */
import type { Statement, Warehouse } from '../../packages/warehouse/src/clickhouse/connection.js';

export type Pause = (name: string) => Promise<void>;

export class SteppedTask {
  /** The names of the statements before which it has stopped, in order. */
  readonly pausePoints: string[] = [];
  #resume: () => void = () => undefined;
  #stopped: Promise<void>;
  #tellStopped: () => void = () => undefined;
  readonly #ended: Promise<void>;
  #hasEnded = false;

  constructor(work: (pause: Pause) => Promise<void>) {
    this.#stopped = this.#nextStop();
    this.#ended = work((name) => this.#pause(name)).finally(() => {
      this.#hasEnded = true;
      this.#tellStopped();
    });
  }

  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Runs one statement, until the task stops before the next one or ends. @returns the statement's name */
  async advance(): Promise<string> {
    await this.#stopped;
    if (this.#hasEnded) {
      await this.#ended;
      throw new Error('the task has ended already');
    }
    const statement = this.pausePoints.at(-1) ?? '';
    const next = this.#nextStop();
    this.#stopped = next;
    this.#resume();
    await next;
    if (this.#hasEnded) await this.#ended;
    return statement;
  }

  #pause(name: string): Promise<void> {
    this.pausePoints.push(name);
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

/** The warehouse, but pausing before each statement of these kinds. There are no other kinds. */
export function pausing(
  warehouse: Warehouse,
  pause: Pause,
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
    within: (scope) => pausing(warehouse.within(scope), pause, kinds),
    ping: () => warehouse.ping(),
    close: () => warehouse.close(),
  };
}

/** Whose turn it was, in order: indices of tasks. */
export type Order = readonly number[];

export interface Move {
  readonly turn: number;
  readonly statement: string;
  /** Whether no earlier order began with the same moves. */
  readonly isNew: boolean;
}

/**
 * Runs every order of the statements of some tasks, with at most so many changes from one to another. A task that has
 * ended gets no more turns, so all orders differ. A fault between tasks mostly needs few changes: each stops at the
 * wrong moment once or twice. (Musuvathi and Qadeer,
 * "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", 2007.)
 *
 * @param count how many tasks there are
 * @param play starts new tasks, calls `next` until all have ended, and then checks the result
 * @returns how many orders were run
 */
export async function playOrders(
  count: number,
  changes: number,
  play: (next: (tasks: readonly SteppedTask[]) => Promise<Move | undefined>, order: Order) => Promise<void>,
): Promise<number> {
  const beginnings: Order[] = Array.from({ length: count }, (_, task) => [task]);
  let played = 0;
  for (let beginning = beginnings.pop(); beginning; beginning = beginnings.pop()) {
    const given = beginning;
    const order: number[] = [];
    await play(async (tasks) => {
      const open = tasks.flatMap(({ hasEnded }, task) => (hasEnded ? [] : [task]));
      const turn = given[order.length] ?? turnAfter(order, open);
      if (turn === undefined) return undefined;
      if (order.length >= given.length) {
        for (const other of open) {
          // After this turn each of those that are open has at least one more.
          const needed = changesOf([...order, other]) + open.length - 1;
          if (other !== turn && needed <= changes) beginnings.push([...order, other]);
        }
      }
      order.push(turn);
      const statement = (await tasks[turn]?.advance()) ?? '';
      return { turn, statement, isNew: order.length >= given.length };
    }, order);
    played += 1;
  }
  return played;
}

/** The next turn: the same task goes on as long as it can. */
function turnAfter(order: Order, open: readonly number[]): number | undefined {
  return open.find((task) => task === order.at(-1)) ?? open[0];
}

function changesOf(order: Order): number {
  return order.filter((turn, index) => index > 0 && turn !== order[index - 1]).length;
}
