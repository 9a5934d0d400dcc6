/**
 * Runs the statements of several actors in every order with a bounded number of switches between actors. An actor stops before each of its
 * statements. Most race conditions need few switches: each actor stops at the wrong moment once or twice. (Musuvathi and Qadeer,
 * "Iterative Context Bounding for Systematic Testing of Multithreaded Programs", 2007.)
 */
import type { Statement, Warehouse } from '../../packages/warehouse/src/clickhouse/connection.js';

type StatementKind = 'read' | 'run';
export type Pause = (name: string, kind: StatementKind) => Promise<void>;

/** A connection that calls `around` in place of each statement; `run` sends it. */
export function intercepted(
  warehouse: Warehouse,
  around: <T>(statement: Statement, kind: StatementKind, run: (changed?: Statement) => Promise<T>) => Promise<T>,
): Warehouse {
  return {
    ...warehouse,
    read: (statement, row) => around(statement, 'read', (changed = statement) => warehouse.read(changed, row)),
    run: (statement, body) => around(statement, 'run', (changed = statement) => warehouse.run(changed, body)),
    within: (scope) => intercepted(warehouse.within(scope), around),
  };
}

/** A connection that pauses before each statement of these kinds. */
export function pausing(warehouse: Warehouse, pause: Pause, kinds: readonly StatementKind[] = ['read', 'run']) {
  return intercepted(warehouse, async ({ name }, kind, run) => {
    if (kinds.includes(kind)) await pause(name, kind);
    return run();
  });
}

/** A task that runs one statement for each call of `step`. */
export class Actor {
  /** The names of its statements so far. */
  readonly path: string[] = [];
  hasEnded = false;
  readonly #work: Promise<void>;
  #next: StatementKind = 'read';
  #resume: () => void = () => undefined;
  #stopped: Promise<void>;
  #stop: () => void = () => undefined;

  constructor(work: (pause: Pause) => Promise<void>) {
    this.#stopped = this.#nextStop();
    const pause: Pause = (name, kind) => {
      this.path.push(name);
      this.#next = kind;
      return new Promise((resume) => {
        this.#resume = resume;
        this.#stop();
      });
    };
    this.#work = work(pause).finally(() => {
      this.hasEnded = true;
      this.#stop();
    });
  }

  /** Runs one statement, and the work that follows until the next one. @returns the kind of the statement */
  async step(): Promise<StatementKind> {
    await this.#stopped;
    if (this.hasEnded) {
      await this.#work;
      throw new Error('the actor has ended already');
    }
    const kind = this.#next;
    this.#stopped = this.#nextStop();
    this.#resume();
    await this.#stopped;
    if (this.hasEnded) await this.#work;
    return kind;
  }

  #nextStop(): Promise<void> {
    return new Promise((resolve) => {
      this.#stop = resolve;
    });
  }
}

/** Whose turn each step is, as indices of actors. */
type Order = readonly number[];

interface Step {
  /** The turns up to this step. */
  readonly order: Order;
  readonly actor: Actor;
  readonly kind: StatementKind;
  /** False if an earlier order began with the same turns, so that this step has been checked. */
  readonly isNew: boolean;
}

export interface Race {
  readonly actors: readonly Actor[];
  afterStep(step: Step): Promise<void>;
  /** Called when all actors have ended. */
  atEnd?(order: Order): Promise<void>;
}

/**
 * Runs the turns of an order; after those, the actor of the last turn continues until it ends, then the others.
 * @param onChoice called with each other order that begins with these turns; an earlier order has had all turns but the last
 */
export async function playOrder(race: Race, given: Order, onChoice?: (other: Order) => void): Promise<void> {
  const order: number[] = [];
  for (;;) {
    const open = race.actors.flatMap(({ hasEnded }, index) => (hasEnded ? [] : [index]));
    const turn = given[order.length] ?? open.find((index) => index === order.at(-1)) ?? open[0];
    const actor = race.actors[turn ?? -1];
    if (turn === undefined || actor === undefined) break;
    if (order.length >= given.length) {
      for (const other of open) if (other !== turn) onChoice?.([...order, other]);
    }
    order.push(turn);
    const kind = await actor.step();
    await race.afterStep({ order, actor, kind, isNew: onChoice === undefined || order.length >= given.length });
  }
  await race.atEnd?.(order);
}

interface Explored {
  readonly orders: number;
  /** How many sequences of statements each actor went through: what an actor finds decides what it does. */
  readonly paths: readonly number[];
}

/**
 * Plays every order with at most this number of switches. All orders differ, because an actor that has ended gets no more turns.
 * @param begin starts new actors for the order with this index
 */
export async function playEveryOrder(switches: number, begin: (index: number) => Promise<Race>): Promise<Explored> {
  const waiting: Order[] = [[]];
  const paths: Set<string>[] = [];
  let orders = 0;
  for (let order = waiting.pop(); order; order = waiting.pop()) {
    const race = await begin(orders);
    await playOrder(race, order, (other) => {
      // Each of the other actors that have not ended takes one more switch at least.
      const open = race.actors.filter(({ hasEnded }) => !hasEnded).length;
      if (switchesOf(other) + open - 1 <= switches) waiting.push(other);
    });
    orders += 1;
    for (const [index, { path }] of race.actors.entries()) {
      paths[index] = (paths[index] ?? new Set()).add(path.join(' '));
    }
  }
  return { orders, paths: paths.map(({ size }) => size) };
}

function switchesOf(order: Order): number {
  return order.filter((turn, index) => index > 0 && turn !== order[index - 1]).length;
}
