/** For tests: sealers, writers, recomputers and queries that race for the rollups of a day, in every order of their statements. */
import { expect } from '@jest/globals';
import { MS_PER_DAY } from '@meterline/catalog';
import type { Accounts } from '../../packages/warehouse/src/accounts.js';
import type { Warehouse } from '../../packages/warehouse/src/clickhouse/connection.js';
import type { PricedEvent } from '../../packages/warehouse/src/events/event-rows.js';
import { insertUsageEvents } from '../../packages/warehouse/src/events/usage-events.js';
import { readMetrics } from '../../packages/warehouse/src/metrics/read.js';
import { metricsStatement } from '../../packages/warehouse/src/metrics/statement.js';
import { readDirtyHours, readOpenMarks } from '../../packages/warehouse/src/rollups/dirty-hours.js';
import { recomputeDirtyHours, sealNext } from '../../packages/warehouse/src/rollups/maintenance.js';
import { readWatermarks, type SealedUntil } from '../../packages/warehouse/src/rollups/watermarks.js';
import { pricedEvent } from './events.js';
import { pausing, playOrders, SteppedTask } from './interleaving.js';
import { recomputeAll, storeEvents, type TestDatabase } from './stack.js';

/** Orders of two tasks with more changes from one to the other are left out; 20 would play all of them. */
export const CHANGES_OF_TWO = 4;
const CHANGES_OF_THREE = 3;

/** All orders take minutes. */
export const TIMEOUT_MS = 1_800_000;
/** Each order has a day of its own, because watermarks never fall. */
const DAYS = 100;

export const SEALER = [
  'raise_watermark',
  'recompute_usage_hourly',
  'raise_watermark',
  'raise_watermark',
  'recompute_usage_daily',
  'raise_watermark',
];
/** What a writer does depends on how far the sealer is when it reads the watermarks. */
export const WRITER = {
  'nothing is being sealed': ['insert_usage_events', 'read_watermarks'],
  'the hour is': ['insert_usage_events', 'read_watermarks', 'mark_dirty_hours'],
};
/** What a recomputer does, by what it finds. */
export const RECOMPUTER = {
  'no mark': ['read_due_marks'],
  'a mark, and the day is not being sealed': [
    'read_due_marks',
    'recompute_usage_hourly',
    'read_watermarks',
    'clear_dirty_hours',
  ],
  'a mark, and the day is': [
    'read_due_marks',
    'recompute_usage_hourly',
    'read_watermarks',
    'recompute_usage_daily',
    'clear_dirty_hours',
  ],
};

export interface Race {
  readonly tasks: readonly SteppedTask[];
  /** The day's usage before they begin, and what each of them does to it. */
  readonly usage: number;
  readonly effects: readonly number[];
}

/** The day's usage from the rollup rows of days or of hours, by a dimension that the small or the large arrays have. */
const QUERYS = [
  { resolution: 'daily', groupBy: ['workspace'] },
  { resolution: 'hourly', groupBy: ['resource_name'] },
] as const;

/**
 * Sealers, writers, recomputers of dirty hours and queries stopped before each of their statements and resumed in
 * every order. After each statement a response holds everything that is acknowledged, and in the end rollup rows and events
 * agree, and so does every response that trusts watermarks read at any moment before.
 */
export class RollupFixture {
  readonly #database: Pick<TestDatabase, 'warehouse'>;

  constructor(database: Pick<TestDatabase, 'warehouse'>) {
    this.#database = database;
  }

  get warehouse(): Warehouse {
    return this.#database.warehouse;
  }

  /** As an ingest process does it. */
  writer(stored: PricedEvent): SteppedTask {
    return new SteppedTask((pause) => storeEvents(pausing(this.warehouse, pause), [stored]));
  }

  recomputer(): SteppedTask {
    return new SteppedTask(async (pause) => {
      await recomputeDirtyHours(pausing(this.warehouse, pause));
    });
  }

  /** A task of one hour step and one day step; only what changes something is worth a pause. */
  sealer(due: number): SteppedTask {
    return new SteppedTask(async (pause) => {
      const paused = pausing(this.warehouse, pause, ['run']);
      while (await sealNext([paused], due));
    });
  }

  /** Does one step that seals hours. */
  async sealHours(due: number): Promise<void> {
    const step = await sealNext([this.warehouse], due);
    expect(step).toMatchObject({ grain: 'hourly', to: due });
  }

  async sealAll(firstDay: number): Promise<void> {
    while (await sealNext([this.warehouse], firstDay + DAYS * MS_PER_DAY));
  }

  async storeOnEachDay(firstDay: number): Promise<void> {
    const events = daysFrom(firstDay).map((timestamp) => pricedEvent({ timestamp }));
    await insertUsageEvents(this.warehouse, events);
  }

  async sealedUntil(): Promise<SealedUntil> {
    const { hourly, daily } = await readWatermarks(this.warehouse);
    return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
  }

  /**
   * Plays every order, each on a day of its own.
   * @returns how many were played, and before which statements their tasks have stopped: by order and by task
   */
  async play(firstDay: number, tasks: 2 | 3, begin: (day: number) => Promise<Race>) {
    const pausePoints: string[][][] = [];
    let sealed = await this.sealedUntil();
    const played = await playOrders(tasks, tasks === 2 ? CHANGES_OF_TWO : CHANGES_OF_THREE, async (next, order) => {
      const day = firstDay + pausePoints.length * MS_PER_DAY;
      const race = await begin(day);
      const { tasks } = race;
      /** Watermarks that a query could have read on the way. */
      const known = new Map<string, SealedUntil>();
      for (let move = await next(tasks); move; move = await next(tasks)) {
        if (move.statement === 'raise_watermark') sealed = await this.sealedUntil();
        known.set(JSON.stringify(sealed), sealed);
        // A statement that only reads changes no response, nor what may be in it, unless its task has ended with it.
        const isRead = move.statement.startsWith('read_') && !tasks[move.turn]?.hasEnded;
        if (isRead || !move.isNew) continue;
        const ended = tasks.map(({ hasEnded }) => hasEnded);
        const requested = ([['acme'], 'all'] as const).map((accounts) => ask(this.warehouse, day, sealed, accounts));
        for (const usage of await Promise.all(requested)) {
          expect({ order, sealed, usage, isExact: allowed(race, ended).has(usage) }).toMatchObject({ isExact: true });
        }
      }
      // Where no hour is dirty, there is nothing to recompute.
      if (await this.#agreesInTheEnd(race, day, order, [...known.values()])) {
        await recomputeAll(this.warehouse);
        await this.#agreesInTheEnd(race, day, order, [...known.values()]);
      }
      pausePoints.push(tasks.map((task) => task.pausePoints));
    });
    expect(await readOpenMarks(this.warehouse)).toMatchObject({ hours: 0 });
    return { played, pausePoints };
  }

  /** @returns whether hours of the day are dirty */
  async #agreesInTheEnd({ usage, effects }: Race, day: number, order: unknown, known: readonly SealedUntil[]) {
    const about = aboutDay(day);
    const dirtyHours = await readDirtyHours(this.warehouse, about.accounts, about.window);
    const total = effects.reduce((sum, effect) => sum + effect, usage);
    const comparisons = QUERYS.map(async (query) => {
      const truth = await readMetrics(this.warehouse, { ...about, ...query });
      expect(truth.totals.usage).toBe(String(total));
      // Watermarks that lead to the same statement have the same response by now.
      const requested = new Set([JSON.stringify(metricsStatement({ ...about, ...query }))]);
      for (const sealed of known) {
        const trusting = { ...about, ...query, rollups: { ...sealed, dirtyHours } };
        const statement = JSON.stringify(metricsStatement(trusting));
        if (requested.has(statement)) continue;
        requested.add(statement);
        const response = await readMetrics(this.warehouse, trusting);
        // Rollup rows do not tell which blocks their events came from.
        const mark = { ...truth.mark, newest_block: expect.any(String) };
        expect({ order, sealed, response }).toEqual({ order, sealed, response: { ...truth, mark } });
      }
    });
    await Promise.all(comparisons);
    return dirtyHours.length > 0;
  }
}

function aboutDay(day: number) {
  return {
    accounts: ['acme'],
    window: { startTime: day, endTime: day + MS_PER_DAY },
    filters: {},
    limit: 100,
  } as const;
}

/** The day's usage in all, as a query that begins now and trusts these watermarks: of the account, or of all accounts. */
export async function ask(
  asker: Warehouse,
  day: number,
  sealed: SealedUntil,
  accounts: Accounts = ['acme'],
): Promise<string> {
  const about = { ...aboutDay(day), accounts };
  const dirtyHours = await readDirtyHours(asker, accounts, about.window);
  const rollups = { ...sealed, dirtyHours };
  return (await readMetrics(asker, { ...about, resolution: 'daily', groupBy: [], rollups })).totals.usage;
}

/**
 * What a response may say: everything of tasks that had ended when it was asked for is in it, and anything of those that
 * had not.
 */
export function allowed({ usage, effects }: Race, ended: readonly boolean[]): Set<string> {
  let sums = [usage];
  for (const [index, effect] of effects.entries()) {
    const after = sums.map((sum) => sum + effect);
    sums = ended[index] ? after : [...sums, ...after];
  }
  return new Set(sums.map(String));
}

/** Lists without repetitions, in an order of their own. */
export function distinct(lists: readonly (readonly string[])[]): string[] {
  return [...new Set(lists.map((list) => list.join(' ')))].sort();
}

/** The pause points of the task with this index. */
export function stopsOf(pausePoints: readonly string[][][], task: number): string[] {
  return distinct(pausePoints.map((ofTasks) => ofTasks[task] ?? []));
}

export function daysFrom(firstDay: number): number[] {
  return Array.from({ length: DAYS }, (_, day) => firstDay + day * MS_PER_DAY);
}

export function lateEvent(day: number): PricedEvent {
  return pricedEvent({ timestamp: day + 1_000, workspace: 'late' });
}
