import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll } from '@jest/globals';
import { insertUsageEvents, type MetricsQuery, type PricedEvent, readMetrics } from '@meterline/warehouse';
import { pricedEvent } from './events.js';
import { createTestDatabase, type TestDatabase } from './stack.js';

export const DAY = 86_400_000;
export const START = Date.UTC(2025, 9, 1);

/** A database for the tests of one file that ask what accounts have used. */
export function askedUsage() {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await createTestDatabase();
  });
  afterAll(() => database.drop());
  return {
    /** An account of its own that has used this. */
    accountWith: async (events: readonly Partial<PricedEvent>[]): Promise<string> => {
      const accountId = randomUUID();
      await insertUsageEvents(
        database.warehouse,
        events.map((changes) => pricedEvent({ accountId, ...changes })),
      );
      return accountId;
    },
    /** About the day, by hours, but for what the question says. */
    ask: (accountId: string, changes: Partial<MetricsQuery> = {}) =>
      readMetrics(database.warehouse, {
        ...{ accounts: [accountId], filters: {}, resolution: 'hourly', groupBy: [], limit: 100 },
        window: { startTime: START, endTime: START + DAY },
        ...changes,
      }),
  };
}

export type SeriesEntry = [bucket: number, cost: string, usage: string];

export function series(...entries: SeriesEntry[]) {
  return {
    buckets: entries.map(([bucket]) => bucket),
    costs: entries.map(([, cost]) => cost),
    usages: entries.map(([, , usage]) => usage),
  };
}
