/**
 * Sealers, writers, recomputers and queries that race for the rollups of one day. After each statement a response holds everything that is
 * acknowledged, whichever earlier reading of the watermarks its query uses. In the end rollup rows and events agree, for all readings too.
 */
import { isDeepStrictEqual } from 'node:util';
import { expect } from '@jest/globals';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import type { Accounts } from '../../packages/warehouse/src/accounts.js';
import { readBounds } from '../../packages/warehouse/src/bounds.js';
import type { Warehouse } from '../../packages/warehouse/src/clickhouse/connection.js';
import { EventRows, Names, type PricedEvent } from '../../packages/warehouse/src/events/event-rows.js';
import { insertUsageEvents } from '../../packages/warehouse/src/events/usage-events.js';
import { readMetrics } from '../../packages/warehouse/src/metrics/read.js';
import { metricsStatement } from '../../packages/warehouse/src/metrics/statement.js';
import { readDirtyHours, readMarkedHours } from '../../packages/warehouse/src/rollups/dirty-hours.js';
import { recomputeDirtyHours, sealNext } from '../../packages/warehouse/src/rollups/maintenance.js';
import { rollupStateReader } from '../../packages/warehouse/src/rollups/readable.js';
import type { SealedUntil } from '../../packages/warehouse/src/rollups/watermarks.js';
import { openEventStore } from './event-store.js';
import { pricedEvent } from './events.js';
import { Actor, intercepted, type Pause, pausing, type Race } from './interleaving.js';
import { recomputeAll, storeEvents } from './stack.js';

/** The day and the account that a race is about. It has one event, `first`, and nothing of it is sealed. */
interface RaceDay {
  readonly warehouse: Warehouse;
  readonly account: string;
  readonly start: EpochMs;
  readonly end: EpochMs;
  readonly first: PricedEvent;
}

interface RollupRace {
  readonly actors: readonly Actor[];
  /** The usage of the day before the race, and how each actor changes it. */
  readonly usage: number;
  readonly effects: readonly number[];
  /** How many hours stay dirty, because their rollup rows are too large. */
  readonly dirty?: number;
}

function lateEvent({ account, start }: RaceDay): PricedEvent {
  return pricedEvent({ accountId: account, timestamp: start + 1_000, workspace: 'late' });
}

/** An ingest process that stores one event. */
function writer({ warehouse }: RaceDay, event: PricedEvent): Actor {
  const job = { id: event.eventId, receivedAt: event.timestamp };
  const accepted = EventRows.of([event], new Names());
  return new Actor((pause) => {
    const store = openEventStore(pausing(warehouse, steps(pause)));
    return store.store([{ job, accepted, rejected: [] }]);
  });
}

/** No statement of a race: nothing depends on conflicts. */
const NO_STEPS: readonly string[] = ['read_conflicting_events'];

function steps(pause: Pause): Pause {
  return async (name, kind) => (NO_STEPS.includes(name) ? undefined : pause(name, kind));
}

function recomputer({ warehouse }: RaceDay): Actor {
  return new Actor(async (pause) => {
    await recomputeDirtyHours(pausing(warehouse, steps(pause)));
  });
}

/** Seals the hours and then the day. Only its writes are steps: no other actor changes what it reads. */
function sealer({ warehouse, end }: RaceDay): Actor {
  return new Actor((pause) => sealAll(pausing(warehouse, pause, ['run']), end));
}

async function sealAll(warehouse: Warehouse, due: EpochMs): Promise<void> {
  while (await sealNext([warehouse], due));
}

/** A query that begins before its first statement. `ask` returns the usage of the day. */
function query(day: RaceDay, race: () => RollupRace, ask: (warehouse: Warehouse) => Promise<string>): Actor {
  return new Actor(async (pause) => {
    let allowed: Set<string> | undefined;
    const begin = steps(async (name, kind) => {
      await pause(name, kind);
      allowed ??= allowedUsage(race());
    });
    const usage = await ask(pausing(day.warehouse, begin));
    expect([...(allowed ?? [])]).toContain(usage);
  });
}

/** A query beside a sealer that has no memory for this statement: it marks the rollup row as too large. */
function besideTooLarge(day: RaceDay, name: string): RollupRace {
  const limits = { stepRows: 1_000, statementRows: 1_000, largeRows: 1 };
  const settings = { max_memory_usage: '1', max_untracked_memory: '1' };
  const starving = intercepted(day.warehouse, (statement, _kind, run) =>
    run(statement.name === name ? { ...statement, settings } : statement),
  );
  const starved = new Actor(async (pause) => {
    const shard = pausing(starving, pause, ['run']);
    const tooLarge: number[] = [];
    for (let step = await sealNext([shard], day.end, limits); step; step = await sealNext([shard], day.end, limits)) {
      tooLarge.push(step.tooLarge.length);
    }
    expect(tooLarge.sort()).toEqual([0, 1]);
  });
  const ask = async (warehouse: Warehouse) => {
    const { window, ...about } = aboutDay(day);
    const rollups = await rollupStateReader(warehouse)({ accounts: about.accounts, warehouse }, window);
    const metrics = { ...about, window, resolution: 'daily', groupBy: [], rollups } as const;
    return (await readMetrics(warehouse, metrics)).totals.usage;
  };
  const race: RollupRace = { actors: [starved, query(day, () => race, ask)], usage: 1, effects: [0, 0], dirty: 1 };
  return race;
}

export const RACES = {
  'a sealer and a writer of an hour that is being sealed': async (day) => ({
    ...{ actors: [writer(day, lateEvent(day)), sealer(day)], usage: 1, effects: [1, 0] },
  }),
  'a sealer of a day and a recomputer of one of its hours': async (day) => {
    expect(await sealNext([day.warehouse], day.end)).toMatchObject({ grain: 'hourly', to: day.end });
    await storeEvents(day.warehouse, [lateEvent(day)]);
    return { actors: [recomputer(day), sealer(day)], usage: 2, effects: [0, 0] };
  },
  'a sealer, a writer and a recomputer of an hour that is being sealed': async (day) => ({
    ...{ actors: [writer(day, lateEvent(day)), recomputer(day), sealer(day)], usage: 1, effects: [1, 0, 0] },
  }),
  'two writers of a sealed hour, of which one sends a void': async (day) => {
    await insertUsageEvents(day.warehouse, [{ ...lateEvent(day), timestamp: day.start + MS_PER_HOUR }]);
    await sealAll(day.warehouse, day.end);
    const voided = { ...day.first, revision: 1, voided: true };
    return { actors: [writer(day, lateEvent(day)), writer(day, voided)], usage: 2, effects: [1, -1] };
  },
  'a writer and a recomputer of a sealed hour, and a query': async (day) => {
    await sealAll(day.warehouse, day.end);
    // The hour is marked already, and its rollup row lacks the event.
    await storeEvents(day.warehouse, [lateEvent(day)]);
    // An older reading of the watermarks is correct too.
    const sealed = await sealedUntil(day.warehouse);
    const actors = [writer(day, lateEvent(day)), recomputer(day)];
    const asks = query(
      day,
      () => race,
      (warehouse) => usageOf({ ...day, warehouse }, sealed),
    );
    const race: RollupRace = { actors: [...actors, asks], usage: 2, effects: [1, 0, 0] };
    return race;
  },
  'two recomputers of a sealed hour and a writer': async (day) => {
    await sealAll(day.warehouse, day.end);
    await storeEvents(day.warehouse, [lateEvent(day)]);
    const actors = [writer(day, lateEvent(day)), recomputer(day), recomputer(day)];
    return { actors, usage: 2, effects: [1, 0, 0] };
  },
  'a sealer of an hour that is too large, and a query': async (day) => besideTooLarge(day, 'recompute_usage_hourly'),
  'a sealer of a day that is too large, and a query': async (day) => besideTooLarge(day, 'recompute_usage_daily'),
} as const satisfies Readonly<Record<string, (day: RaceDay) => Promise<RollupRace>>>;

/**
 * Watermarks never fall, so each race of a database has the day after that of the race before.
 * @param index how many races the database had before
 */
export async function rollupRace(warehouse: Warehouse, name: keyof typeof RACES, index: number): Promise<Race> {
  const start = Date.UTC(2000, 0, 1) + index * MS_PER_DAY;
  const account = `race-${index}`;
  const first = pricedEvent({ accountId: account, timestamp: start });
  const day: RaceDay = { warehouse, account, start, end: start + MS_PER_DAY, first };
  await insertUsageEvents(warehouse, [first]);
  const race: RollupRace = await RACES[name](day);
  let sealed = await sealedUntil(warehouse);
  const known: SealedUntil[] = [sealed];
  return {
    actors: race.actors,
    afterStep: async ({ order, actor, kind, isNew }) => {
      if (kind === 'run') sealed = await sealedUntil(warehouse);
      if (!known.some((reading) => isDeepStrictEqual(reading, sealed))) known.push(sealed);
      // A read changes no response; it can only end its actor.
      if (!isNew || (kind === 'read' && !actor.hasEnded)) return;
      const allowed = allowedUsage(race);
      for (const reading of known) {
        const found = await Promise.all([usageOf(day, reading), usageOf(day, reading, 'all')]);
        for (const usage of found) {
          expect({ order, reading, usage, isExact: allowed.has(usage) }).toMatchObject({ isExact: true });
        }
      }
    },
    atEnd: async (order) => {
      const usage = race.effects.reduce((sum, effect) => sum + effect, race.usage);
      if ((await dirtyHoursAfterComparison(day, order, usage, known)) === 0) return;
      await recomputeAll(warehouse);
      const dirty = await dirtyHoursAfterComparison(day, order, usage, known);
      expect({ order, dirty }).toEqual({ order, dirty: race.dirty ?? 0 });
    },
  };
}

/** By days and by hours, with dimensions of the small and of the large arrays of a rollup row. */
const QUERIES = [
  { resolution: 'daily', groupBy: ['workspace'] },
  { resolution: 'hourly', groupBy: ['resource_name'] },
] as const;

/** Compares the rollup rows, as far as each of the watermarks allows them, with the events. @returns how many hours are dirty */
async function dirtyHoursAfterComparison(
  day: RaceDay,
  order: unknown,
  usage: number,
  known: readonly SealedUntil[],
): Promise<number> {
  const about = aboutDay(day);
  const dirtyHours = await readMarkedHours(day.warehouse, about.accounts, about.window);
  const comparisons = QUERIES.map(async (each) => {
    const query = { ...about, ...each };
    const truth = await readMetrics(day.warehouse, query);
    expect({ order, usage: truth.totals.usage }).toEqual({ order, usage: String(usage) });
    // Rollup rows do not tell which blocks their events came from.
    const expected = { ...truth, mark: { ...truth.mark, newest_block: expect.any(String) } };
    const trusting = known.map((sealed) => ({ ...query, rollups: { ...sealed, dirtyHours } }));
    // Watermarks that lead to the same statement have the same response.
    const distinct = new Map(trusting.map((asked) => [JSON.stringify(metricsStatement(asked)), asked]));
    for (const asked of distinct.values()) {
      const response = await readMetrics(day.warehouse, asked);
      const { rollups } = asked;
      expect({ order, rollups, response }).toEqual({ order, rollups, response: expected });
    }
  });
  await Promise.all(comparisons);
  return dirtyHours.length;
}

async function sealedUntil(warehouse: Warehouse): Promise<SealedUntil> {
  const { hourly, daily } = await readBounds(warehouse);
  return { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
}

function aboutDay({ account, start, end }: RaceDay) {
  return { accounts: [account], window: { startTime: start, endTime: end }, filters: {}, limit: 100 } as const;
}

/** The usage of the day, as a query that begins now and trusts these watermarks. */
async function usageOf(day: RaceDay, sealed: SealedUntil, accounts: Accounts = [day.account]): Promise<string> {
  const { warehouse } = day;
  const about = { ...aboutDay(day), accounts };
  const dirtyHours = await readDirtyHours(warehouse, accounts, about.window);
  const rollups = { ...sealed, dirtyHours };
  return (await readMetrics(warehouse, { ...about, resolution: 'daily', groupBy: [], rollups })).totals.usage;
}

/** What a response may say now: it includes the effects of all actors that have ended, and any of the others. */
function allowedUsage({ actors, usage, effects }: RollupRace): Set<string> {
  let sums = [usage];
  for (const [index, effect] of effects.entries()) {
    const after = sums.map((sum) => sum + effect);
    sums = actors[index]?.hasEnded ? after : [...sums, ...after];
  }
  return new Set(sums.map(String));
}
