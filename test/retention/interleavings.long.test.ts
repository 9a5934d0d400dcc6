/**
 * A worker that has let an old event pass, and an operator who drops the event's month, stopped before each of their statements
 * and resumed in every order. Whatever the order: an event that is accepted counts from its acknowledgement on, one that does not
 * count is kept as rejected, and hours and days agree.
 */
import { beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, END_OF_TIME, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { dropClosedMonths } from '@meterline/cli/operations/retention';
import {
  insertUsageEvents,
  oneServer,
  readDirtyHours,
  readMetrics,
  readRetentionBounds,
  readWatermarks,
  sealNext,
  setRetentionBound,
  type Warehouse,
} from '@meterline/warehouse';
import { CommandError } from '../../packages/cli/src/failure.js';
import { Pricer } from '../../services/ingest/src/intake.js';
import { openEventStore } from '../harness/event-store.js';
import { pricedEvent, usageEvent } from '../harness/events.js';
import { Actor, pausing, playEveryOrder } from '../harness/interleaving.js';
import { select } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

/** Maximum number of switches between the worker and the operator. A bound that is read too early fails with two. */
const SWITCHES = 3;
const TIMEOUT_MS = 1_800_000;
/** Each order has a month of its own, because the bounds never fall. */
const MONTHS = 60;
const SEALED_UNTIL = Date.UTC(1970, MONTHS);
const NOW = Date.UTC(1970, MONTHS + 2);

const database = testDatabase();
let warehouse: Warehouse;
beforeAll(async () => {
  warehouse = database.warehouse;
  const months = Array.from({ length: MONTHS }, (_, month) => Date.UTC(1970, month));
  await insertUsageEvents(
    warehouse,
    months.map((timestamp) => pricedEvent({ timestamp, workspace: 'early' })),
  );
  while (await sealNext([warehouse], SEALED_UNTIL));
});

/** A worker that knew of no bound when it checked the event. */
function worker(job: string, timestamp: number): Actor {
  const event = usageEvent(0, {
    ...{ eventId: `0190c5e4-7b1a-7def-8abc-${job.padStart(12, '0')}`, workspace: 'late' },
    timestamp: formatTimestamp(timestamp),
    // Above all that the rollup row is computed from.
    revision: 65_535,
  });
  const queued = { id: job, receivedAt: NOW, data: JSON.stringify(event) };
  const intake = new Pricer(DEFAULT_PRICE_BOOK).priceJob(queued, NOW, 0);
  return new Actor((pause) => openEventStore(pausing(warehouse, pause)).store([intake]));
}

const DROP = {
  signal: new AbortController().signal,
  onProgress: () => undefined,
  onDropped: () => undefined,
  recheckMs: 1,
  before: END_OF_TIME,
};

function dropper(month: Window): Actor {
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
async function responses(month: number): Promise<string[]> {
  const { hourly, daily } = await readWatermarks(warehouse);
  const window = { startTime: month, endTime: month + 2 * MS_PER_DAY };
  const [{ droppedBefore }, dirty] = await Promise.all([
    readRetentionBounds(warehouse),
    readDirtyHours(warehouse, ['acme'], window),
  ]);
  const dirtyHours = dirty.filter(({ bucket }) => bucket >= droppedBefore);
  const rollups = { hourly: hourly.sealedUntil, daily: daily.sealedUntil, dirtyHours };
  const query = { accounts: ['acme'], filters: {}, limit: 9, groupBy: ['workspace'] as const, window, rollups };
  const found = (['hourly', 'daily'] as const).map((resolution) => readMetrics(warehouse, { ...query, resolution }));
  return (await Promise.all(found)).map(({ totals }) => totals.usage);
}

async function isRejected(job: string): Promise<boolean> {
  const rows = await select(warehouse, 'SELECT reason FROM rejected_events FINAL WHERE job_id = {job: String}', {
    job,
  });
  if (rows.length > 0) expect(rows).toEqual([{ reason: 'too_old' }]);
  return rows.length > 0;
}

it(
  'an old event counts, or is kept as rejected, in every order of a worker and of the drop of its month',
  async () => {
    const outcomes = new Set<string>();
    const explored = await playEveryOrder(SWITCHES, async (month) => {
      const [start, end] = [Date.UTC(1970, month), Date.UTC(1970, month + 1)];
      const job = `${month}`;
      await setRetentionBound([warehouse], 'closed', end);
      const actors = [worker(job, start + 1), dropper({ startTime: start, endTime: end })] as const;
      return {
        actors,
        afterStep: async ({ order, isNew }) => {
          if (!isNew) return;
          const shown = await responses(start);
          const isDue = actors[0].hasEnded && !(await isRejected(job));
          for (const usage of shown) {
            expect({ order, shown, isAllowed: usage === '2' || (usage === '1' && !isDue) }).toMatchObject({
              isAllowed: true,
            });
          }
        },
        atEnd: async (order) => {
          const [hours, days] = await responses(start);
          const [counts, rejected] = [hours === '2', await isRejected(job)];
          expect({ order, hours, days, isKept: counts || rejected }).toEqual({
            ...{ order, hours, days: hours, isKept: true },
          });
          outcomes.add(`${counts ? 'counts' : 'does not count'}, ${rejected ? 'rejected' : 'accepted'}`);
          expect(await readRetentionBounds(warehouse)).toMatchObject({ droppedBefore: end });
          // An event that came too late is still in the table: dropping again changes no response.
          await dropClosedMonths({ ...DROP, shards: oneServer(warehouse) });
          expect(await responses(start)).toEqual([hours, days]);
        },
      };
    });
    expect([...outcomes].sort()).toEqual(['counts, accepted', 'counts, rejected', 'does not count, rejected']);
    expect(explored.orders).toBeGreaterThanOrEqual(35);
  },
  TIMEOUT_MS,
);
