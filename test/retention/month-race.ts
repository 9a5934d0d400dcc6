/**
 * A race for an old event: a worker that has let it pass, and an operator who drops its month. Whatever the order of their statements, an
 * accepted event counts from its acknowledgement on, an event that does not count is kept as rejected, and hours and days agree.
 */
import { expect } from '@jest/globals';
import {
  DEFAULT_PRICE_BOOK,
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  MS_PER_DAY,
  type Window,
} from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { dropClosedMonths } from '@meterline/cli/operations/retention';
import {
  insertUsageEvents,
  oneServer,
  readBounds,
  readMarkedHours,
  readMetrics,
  sealNext,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
import { CommandError } from '../../packages/cli/src/failure.js';
import { JobPreparer } from '../../services/ingest/src/intake.js';
import { openEventStore } from '../harness/event-store.js';
import { pricedEvent, usageEvent } from '../harness/events.js';
import { Actor, pausing, type Race } from '../harness/interleaving.js';
import { select } from '../harness/stack.js';

/**
 * A month of its own for each race of a database, because the bounds never fall. One event of it is stored and sealed.
 * @param outcomes gets what becomes of the old event
 */
export async function monthRace(warehouse: Warehouse, index: number, outcomes = new Set<string>()): Promise<Race> {
  const [start, end] = [Date.UTC(1970, index), Date.UTC(1970, index + 1)];
  const job = `${index}`;
  await insertUsageEvents(warehouse, [pricedEvent({ timestamp: start, workspace: 'early' })]);
  while (await sealNext([warehouse], end));
  await setRetentionBound([warehouse], 'closed', end);
  const stores = worker(warehouse, job, start + 1);
  return {
    actors: [stores, dropper(warehouse, { startTime: start, endTime: end })],
    afterStep: async ({ order, isNew }) => {
      if (!isNew) return;
      const shown = await responses(warehouse, start);
      const isDue = stores.hasEnded && !(await isRejected(warehouse, job));
      for (const usage of shown)
        expect({ order, usage }).toEqual({ order, usage: expect.stringMatching(isDue ? /^2$/ : /^[12]$/) });
    },
    atEnd: async (order) => {
      const [hours, days] = await responses(warehouse, start);
      const [counts, rejected] = [hours === '2', await isRejected(warehouse, job)];
      expect({ order, days, isKept: counts || rejected }).toEqual({ order, days: hours, isKept: true });
      outcomes.add(`${counts ? 'counts' : 'does not count'}, ${rejected ? 'rejected' : 'accepted'}`);
      expect(await readBounds(warehouse)).toMatchObject({ droppedBefore: end });
      // An event that came too late is still in the table: dropping again changes no response.
      await dropClosedMonths({ ...DROP, shards: oneServer(warehouse) });
      expect(await responses(warehouse, start)).toEqual([hours, days]);
    },
  };
}

/** A worker that knew of no bound when it checked the event. */
function worker(warehouse: Warehouse, job: string, timestamp: number): Actor {
  const event = usageEvent(0, {
    ...{ eventId: `0190c5e4-7b1a-7def-8abc-${job.padStart(12, '0')}`, workspace: 'late' },
    timestamp: formatTimestamp(timestamp),
    // Above all that the rollup row is computed from.
    revision: 65_535,
  });
  const queued = { id: job, receivedAt: timestamp, data: JSON.stringify(event) };
  const prepared = new JobPreparer(DEFAULT_PRICE_BOOK).prepare(queued, Date.now(), 0);
  return new Actor((pause) => openEventStore(pausing(warehouse, pause)).store([prepared]));
}

const DROP = {
  signal: new AbortController().signal,
  onProgress: () => undefined,
  onDropped: () => undefined,
  recheckMs: 1,
  before: END_OF_TIME,
};

function dropper(warehouse: Warehouse, month: Window): Actor {
  return new Actor(async (pause) => {
    const paused = pausing(warehouse, pause, ['run']);
    const options = { ...DROP, shards: oneServer(paused) };
    const drop = () => dropClosedMonths(options);
    // An event that was stored and not rolled up yet: the operator does what the error says.
    await drop().catch(async (error: unknown) => {
      if (!(error instanceof CommandError)) throw error;
      await auditRollups({ ...options, accountId: undefined, window: month, repair: true });
      await drop();
    });
  });
}

/** The usage of a month, hour by hour and from its days, as the API reads them. */
async function responses(warehouse: Warehouse, month: EpochMs): Promise<string[]> {
  const { hourly, daily, droppedBefore } = await readBounds(warehouse);
  const window = { startTime: month, endTime: month + 2 * MS_PER_DAY };
  const dirty = await readMarkedHours(warehouse, ['acme'], window);
  const dirtyHours = dirty.filter(({ bucket }) => bucket >= droppedBefore);
  const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours };
  const query = { accounts: ['acme'], filters: {}, limit: 9, groupBy: ['workspace'] as const, window, rollups };
  const found = (['hourly', 'daily'] as const).map((resolution) => readMetrics(warehouse, { ...query, resolution }));
  return (await Promise.all(found)).map(({ totals }) => totals.usage);
}

async function isRejected(warehouse: Warehouse, job: string): Promise<boolean> {
  const rows = await select(warehouse, 'SELECT reason FROM rejected_events FINAL WHERE job_id = {job: String}', {
    job,
  });
  if (rows.length > 0) expect(rows).toEqual([{ reason: 'too_old' }]);
  return rows.length > 0;
}
