/** For tests: runs the statements of two actors in every possible order. An actor stops before each statement. */
import type { Statement, Warehouse } from '@meterline/warehouse';

type Pause = (name: string) => Promise<void>;

export class Actor {
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

  /** Runs one statement, until the actor stops before the next one or ends. @returns the statement's name */
  async advance(): Promise<string> {
    await this.#stopped;
    if (this.#hasEnded) {
      await this.#ended;
      throw new Error('the actor has ended already');
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

/** Whose turn it was, in order: 0 or 1. */
export type Order = readonly number[];

export interface Move {
  readonly turn: number;
  readonly statement: string;
  /** Whether no earlier order began with the same moves. */
  readonly isNew: boolean;
}

/**
 * Runs every order of the statements of two actors, with at most so many changes from one to the other. An actor that has
 * ended gets no more turns, so all orders differ. A fault between two actors mostly needs few changes: each stops at the
 * wrong moment once or twice. (Musuvathi and Qadeer,
 * "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", 2007.)
 *
 * @param play starts two new actors, calls `next` until both have ended, and then checks the result
 * @returns how many orders were run
 */
export async function playOrders(
  changes: number,
  play: (next: (actors: readonly [Actor, Actor]) => Promise<Move | undefined>, order: Order) => Promise<void>,
): Promise<number> {
  const beginnings: Order[] = [[0], [1]];
  let played = 0;
  for (let beginning = beginnings.pop(); beginning; beginning = beginnings.pop()) {
    const given = beginning;
    const order: number[] = [];
    await play(async (actors) => {
      const turn = given[order.length] ?? turnAfter(order, actors);
      if (turn === undefined) return undefined;
      // One change to the other actor, and one back, because this actor has not ended.
      const other = 1 - turn;
      if (order.length >= given.length && order.at(-1) === turn && !actors[other]?.hasEnded) {
        if (changesOf(order) + 2 <= changes) beginnings.push([...order, other]);
      }
      order.push(turn);
      const statement = (await actors[turn]?.advance()) ?? '';
      return { turn, statement, isNew: order.length >= given.length };
    }, order);
    played += 1;
  }
  return played;
}

/** The same actor goes on as long as it can. */
function turnAfter(order: Order, actors: readonly [Actor, Actor]): number | undefined {
  const last = order.at(-1) ?? 0;
  return [last, 1 - last].find((turn) => actors[turn]?.hasEnded === false);
}

function changesOf(order: Order): number {
  return order.filter((turn, index) => index > 0 && turn !== order[index - 1]).length;
}
