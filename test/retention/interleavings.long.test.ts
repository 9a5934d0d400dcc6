/**
 * A worker that has let an old event pass, and an operator who drops the event's month, stopped before each of their statements
 * and resumed in every order. Whatever the order: an event that is accepted counts from its acknowledgement on, one that does not
 * count is kept as rejected, and hours and days agree.
 */
import { beforeAll, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, END_OF_TIME, formatTimestamp, MS_PER_DAY, type Window } from '@meterline/catalog';
import { auditRollups } from '@meterline/cli/operations/audit';
import { dropClosedMonths } from '@meterline/cli/operations/retention';
import { noTracing } from '@meterline/service/tracing';
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
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { CommandError } from '../../packages/cli/src/failure.js';
import { EventStore } from '../../services/ingest/src/event-store.js';
import { Pricer } from '../../services/ingest/src/intake.js';
import { createIngestMetrics } from '../../services/ingest/src/metrics.js';
import { pricedEvent, usageEvent } from '../harness/events.js';
import { pausing, playOrders, SteppedTask } from '../harness/interleaving.js';
import { select } from '../harness/stack.js';
import { testDatabase } from '../harness/test-database.js';

/** Orders with more changes between the tasks are left out. A bound that is read too early takes two to show. */
const CHANGES = 3;
const TIMEOUT_MS = 1_800_000;
/** Each order has a month of its own, because the bounds never fall. */
const MONTHS = 60;
const SEALED_UNTIL = Date.UTC(1970, MONTHS);
const NOW = Date.UTC(1970, MONTHS + 2);

/** What it compares and reads comes between them. */
const DROPPER = [
  'set_dropping_before',
  'make_hours_final',
  'recompute_usage_daily',
  'set_dropped_before',
  'drop_event_month',
];

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
function worker(job: string, timestamp: number): SteppedTask {
  const event = usageEvent(0, {
    ...{ eventId: `0190c5e4-7b1a-7def-8abc-${job.padStart(12, '0')}`, workspace: 'late' },
    timestamp: formatTimestamp(timestamp),
    // Above all that the rollup row is computed from.
    revision: 65_535,
  });
  const queued = { id: job, receivedAt: NOW, data: JSON.stringify(event) };
  const intake = new Pricer(DEFAULT_PRICE_BOOK).priceJob(queued, NOW, 0);
  return new SteppedTask(async (pause) => {
    const store = new EventStore({
      warehouse: pausing(warehouse, pause),
      log: pino({ enabled: false }),
      signal: new AbortController().signal,
      metrics: createIngestMetrics(new Registry()),
      tracer: noTracing().tracer,
    });
    await store.store([intake]);
  });
}

const DROP = {
  signal: new AbortController().signal,
  onProgress: () => undefined,
  onDropped: () => undefined,
  recheckMs: 1,
  before: END_OF_TIME,
};

function dropper(month: Window): SteppedTask {
  return new SteppedTask(async (pause) => {
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
    const outcomes = new Map<string, number>();
    const pausePoints = new Set<string>();
    let month = 0;
    const played = await playOrders(2, CHANGES, async (next, order) => {
      const [start, end] = [Date.UTC(1970, month), Date.UTC(1970, month + 1)];
      const job = `${month}`;
      month += 1;
      await setRetentionBound([warehouse], 'closed', end);
      const tasks = [worker(job, start + 1), dropper({ startTime: start, endTime: end })] as const;
      for (let move = await next(tasks); move; move = await next(tasks)) {
        if (!move.isNew) continue;
        const shown = await responses(start);
        const isDue = tasks[0].hasEnded && !(await isRejected(job));
        const allowed = isDue ? ['2'] : ['1', '2'];
        for (const usage of shown)
          expect({ order, shown, isIn: allowed.includes(usage) }).toMatchObject({ isIn: true });
      }
      const [hours, days] = await responses(start);
      const [counts, rejected] = [hours === '2', await isRejected(job)];
      expect({ order, hours, days, isKept: counts || rejected }).toEqual({ order, hours, days: hours, isKept: true });
      const outcome = `${counts ? 'counts' : 'does not count'}, ${rejected ? 'rejected' : 'accepted'}`;
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
      for (const name of tasks[1].pausePoints) pausePoints.add(name);
      expect(await readRetentionBounds(warehouse)).toMatchObject({ droppedBefore: end });
      // What has come too late and lies there still.
      await dropClosedMonths({ ...DROP, shards: oneServer(warehouse) });
      expect(await responses(start)).toEqual([hours, days]);
    });
    expect(month).toBe(played);
    expect([...pausePoints]).toEqual(expect.arrayContaining(DROPPER));
    expect([...outcomes.keys()].sort()).toEqual(['counts, accepted', 'counts, rejected', 'does not count, rejected']);
    expect(played).toBe(35);
  },
  TIMEOUT_MS,
);
