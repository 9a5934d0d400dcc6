import { EventEmitter, once } from 'node:events';
import { beforeEach, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK, MS_PER_HOUR } from '@meterline/catalog';
import { noTracing } from '@meterline/service/tracing';
import { createWarehouse, raiseWatermarks, readDirtyHours, setRetentionBound } from '@meterline/warehouse';
import { type Logger, pino } from 'pino';
import { Registry } from 'prom-client';
import { SANDBOX_EVENT } from '../../../test/harness/events.js';
import { execute, select } from '../../../test/harness/stack.js';
import { testDatabase } from '../../../test/harness/test-database.js';
import { EventStore } from './event-store.js';
import { JobPreparer, type PreparedJob } from './intake.js';
import { createIngestMetrics } from './metrics.js';

const database = testDatabase('each test');
let lines: Record<string, unknown>[];
let log: Logger;
/** Emits `line` for each line of the log. */
let logged: EventEmitter;
beforeEach(async () => {
  lines = [];
  logged = new EventEmitter();
  const write = (line: string) => {
    lines.push(JSON.parse(line));
    logged.emit('line');
  };
  log = pino({}, { write });
});

function openStore({ warehouse = database.warehouse, signal = new AbortController().signal } = {}): EventStore {
  const metrics = createIngestMetrics(new Registry());
  return new EventStore({ warehouse, log, signal, metrics, tracer: noTracing().tracer });
}

/** A job with one event for each usage; a negative usage is rejected at intake. */
function preparedJob(id: string, usages: readonly number[], changes: object = {}): PreparedJob {
  const events = usages.map((usage, position) => ({
    ...SANDBOX_EVENT,
    eventId: `0190c5e4-7b1a-7def-8abc-${id.padStart(6, '0')}${String(position).padStart(6, '0')}`,
    usage,
    ...changes,
  }));
  const now = Date.UTC(2026, 5, 1);
  return new JobPreparer(DEFAULT_PRICE_BOOK).prepare({ id, receivedAt: now, data: JSON.stringify({ events }) }, now, 0);
}

async function column(query: string): Promise<unknown[]> {
  return (await select(database.warehouse, query)).map((row) => Object.values(row)[0]);
}

const usages = () => column('SELECT toFloat64(usage) FROM usage_events FINAL ORDER BY usage');
const rejections = () =>
  column("SELECT job_id || ':' || toString(position) || ':' || reason FROM rejected_events FINAL ORDER BY 1");

/** Resolves when the store has logged that ClickHouse is away. */
async function outage(): Promise<void> {
  while (!lines.some(({ event }) => event === 'outage')) await once(logged, 'line');
}

it('the event store stores accepted and rejected events of several jobs, and storing them again changes nothing', async () => {
  const store = openStore();
  for (let time = 0; time < 2; time += 1) await store.store([preparedJob('1', [1, -1, 2]), preparedJob('2', [3])]);
  expect(await usages()).toEqual([1, 2, 3]);
  expect(await rejections()).toEqual(['1:1:invalid_usage']);
  expect(lines).toEqual([]);
});

it('the event store finds exactly the events that ClickHouse rejects, stores all others, and logs one line', async () => {
  await execute(database.warehouse, 'ALTER TABLE usage_events ADD CONSTRAINT small CHECK usage < 100');
  const store = openStore();
  const many = Array.from({ length: 60 }, (_, n) => n + 1);
  await store.store([preparedJob('1', [500, ...many]), preparedJob('2', [70, 600, 700]), preparedJob('3', [80, 900])]);
  expect(await usages()).toEqual([...many, 70, 80]);
  expect(await rejections()).toEqual([
    ...['1:0:rejected_by_storage', '2:1:rejected_by_storage', '2:2:rejected_by_storage', '3:1:rejected_by_storage'],
  ]);
  expect(lines).toMatchObject([{ event: 'rejected_by_storage', events: 4 }]);
});

it('the event store rejects what it has stored if its month is being dropped, but not what is rejected already', async () => {
  await execute(database.warehouse, 'ALTER TABLE usage_events ADD CONSTRAINT small CHECK usage < 100');
  await setRetentionBound(database.shards.all, 'dropping', Date.UTC(2026, 1));
  const store = openStore();
  await store.store([preparedJob('1', [1, 500, -1]), preparedJob('2', [2], { timestamp: '2026-02-01T00:00:00Z' })]);
  expect(await rejections()).toEqual(['1:0:too_old', '1:1:rejected_by_storage', '1:2:invalid_usage']);
  expect(await usages()).toEqual([1, 2]);
});

it('the event store fails a batch that meets a defect of ours, and does not wait for ClickHouse', async () => {
  // A row that this build does not know.
  const grains = "Enum8('hourly' = 1, 'daily' = 2, 'yearly' = 3)";
  await execute(database.warehouse, `ALTER TABLE rollup_watermarks MODIFY COLUMN grain ${grains}`);
  await execute(database.warehouse, "INSERT INTO rollup_watermarks (grain) VALUES ('yearly')");
  await expect(openStore().store([preparedJob('1', [1])])).rejects.toThrow('Invalid option');
  expect(lines).toEqual([]);
});

/** Tables that are away, each with the number of events that are stored meanwhile. */
it.each([
  ['rejected_events', 0],
  ['usage_events', 0],
  ['retention_bounds', 2],
  ['rollup_watermarks', 2],
])('the event store waits for %s during an outage, and continues afterwards', async (table, meanwhile) => {
  await execute(database.warehouse, `RENAME TABLE ${table} TO elsewhere`);
  const store = openStore();
  let isStored = false;
  const stored = store.store([preparedJob('1', [1, -1, 2])]).then(() => {
    isStored = true;
  });
  await outage();
  expect([isStored, store.isClickHouseAway]).toEqual([false, true]);
  const events = table === 'usage_events' ? 'elsewhere' : 'usage_events';
  expect(await column(`SELECT toUInt32(count()) FROM ${events}`)).toEqual([meanwhile]);
  await execute(database.warehouse, `RENAME TABLE elsewhere TO ${table}`);
  await stored;
  expect(store.isClickHouseAway).toBe(false);
  expect(await usages()).toEqual([1, 2]);
  expect(await rejections()).toEqual(['1:1:invalid_usage']);
  expect(lines.map(({ event }) => event)).toEqual(['outage', 'outage_over']);
});

it('the event store marks the sealed hours of late events before it is done, and no others', async () => {
  const sealed = Date.UTC(2026, 0, 1) + MS_PER_HOUR;
  await raiseWatermarks(database.shards.all, 'hourly', { sealingUntil: sealed, sealedUntil: sealed });
  const store = openStore();
  const current = { accountId: 'globex', timestamp: '2026-01-01T01:00:00Z' };
  await store.store([preparedJob('1', [1, -1]), preparedJob('2', [2], current), preparedJob('3', [3])]);
  const window = { startTime: 0, endTime: sealed + MS_PER_HOUR };
  expect(await readDirtyHours(database.warehouse, ['acme'], window)).toEqual([
    { accountId: 'acme', bucket: sealed - MS_PER_HOUR },
  ]);
  expect(await readDirtyHours(database.warehouse, ['globex'], window)).toEqual([]);
});

it('the event store gives up a server that cannot be reached only when its signal is aborted', async () => {
  const unreachable = createWarehouse({ ...database.options, url: 'http://127.0.0.1:1' });
  const abort = new AbortController();
  const store = openStore({ warehouse: unreachable, signal: abort.signal });
  const stored = store.store([preparedJob('1', [1])]).then(
    () => 'stored',
    (error: Error) => error.name,
  );
  await outage();
  expect(store.isClickHouseAway).toBe(true);
  abort.abort();
  expect(await stored).toBe('AbortError');
  expect(lines.map(({ event }) => event)).toEqual(['outage']);
  await unreachable.close();
});
