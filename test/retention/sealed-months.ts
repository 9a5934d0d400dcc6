/** Three sealed months of two accounts, and a drop of their events that can die at any statement. */
import { beforeAll, beforeEach } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { closeMonths, type DropOptions, dropClosedMonths, reopenMonths } from '@meterline/cli/operations/retention';
import {
  insertUsageEvents,
  oneServer,
  readBounds,
  readEventMonths,
  readMetrics,
  type Statement,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { intercepted } from '../harness/interleaving.js';
import { testDatabase } from '../harness/test-database.js';

export const [OCTOBER, NOVEMBER, DECEMBER] = [Date.UTC(2025, 9), Date.UTC(2025, 10), Date.UTC(2025, 11)];
export const ALL_MONTHS = [OCTOBER, NOVEMBER, DECEMBER];
export const SEALED_UNTIL = Date.UTC(2026, 0);
const WINDOW = { startTime: OCTOBER, endTime: SEALED_UNTIL };
const ACCOUNTS = ['acme', 'globex'];

/** Selects the statement at which a process dies, from the statement and its number, from 1. */
export type IsFatal = (statement: Statement, number: number) => boolean;

/** Registers the set-up of the file, or of each test, that calls this function. */
export function sealedMonths(of: 'file' | 'each test' = 'each test') {
  const database = testDatabase(of);
  const options = (changes: Partial<DropOptions> = {}): DropOptions => ({
    shards: oneServer(database.warehouse),
    before: SEALED_UNTIL,
    signal: new AbortController().signal,
    onProgress: () => undefined,
    onDropped: () => undefined,
    recheckMs: 1,
    ...changes,
  });
  const drop = (changes?: Partial<DropOptions>) => dropClosedMonths(options(changes));

  const before = of === 'file' ? beforeAll : beforeEach;
  before(async () => {
    const { warehouse } = database;
    const [first, ...others] = ACCOUNTS.flatMap((accountId) =>
      ALL_MONTHS.flatMap((month) =>
        [0, 1, 23, 31 * 24 - 25].map((hour) =>
          pricedEvent({ accountId, timestamp: month + hour * MS_PER_HOUR + 1, workspace: `w${hour % 3}` }),
        ),
      ),
    );
    if (!first) throw new Error('there are no events');
    await insertUsageEvents(warehouse, [first, ...others, { ...first, revision: 1, usage: 7n }]);
    await insertUsageEvents(warehouse, [pricedEvent({ accountId: 'acme', timestamp: OCTOBER, voided: true })]);
    while (await sealNext([warehouse], SEALED_UNTIL));
  });

  return {
    get warehouse() {
      return database.warehouse;
    },
    options,
    drop,
    close: (before: number) => closeMonths(oneServer(database.warehouse), before),
    reopen: (from: number) => reopenMonths(oneServer(database.warehouse), from),
    /** @returns false if the drop died at the fatal statement */
    dropOrDie: (isFatal: IsFatal, when: 'before' | 'after') =>
      drop({ shards: oneServer(dyingAt(database.warehouse, isFatal, when)) }).then(
        () => true,
        (error: Error) => {
          if (error.message !== DIED) throw error;
          return false;
        },
      ),
    /** The ends of the months that are closed, are being dropped, and are dropped. */
    bounds: async () => {
      const { closedBefore, droppingBefore, droppedBefore } = await readBounds(database.warehouse);
      return [closedBefore, droppingBefore, droppedBefore];
    },
    months: async () => (await readEventMonths(database.warehouse)).map(({ startTime }) => startTime),
    /** Every account's response for whole hours and months, read from rollup rows. */
    responses: async (): Promise<Awaited<ReturnType<typeof readMetrics>>[]> => {
      const { hourly, daily } = await readBounds(database.warehouse);
      const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours: [] };
      const queries = ACCOUNTS.flatMap((accountId) => [
        { accounts: [accountId], resolution: 'hourly' as const, groupBy: ['workspace'] as const },
        { accounts: [accountId], resolution: 'monthly' as const, groupBy: ['resource_name', 'resource_uuid'] as const },
      ]);
      const results = queries.map((query) =>
        readMetrics(database.warehouse, { ...query, window: WINDOW, filters: {}, limit: 100, rollups }),
      );
      return Promise.all(results);
    },
  };
}

const DIED = 'the process died';

/** The connection of a process that dies before or after its fatal statement. A read has no effect, so it never runs. */
function dyingAt(warehouse: Warehouse, isFatal: IsFatal, when: 'before' | 'after'): Warehouse {
  let statements = 0;
  let isDead = false;
  return intercepted(warehouse, async (statement, kind, run) => {
    if (isDead) throw new Error(DIED);
    statements += 1;
    isDead = isFatal(statement, statements);
    if (!isDead) return run();
    if (when === 'after' && kind === 'run') await run();
    throw new Error(DIED);
  });
}
