import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { raiseWatermarks, readOpenMarks, type Warehouse } from '@meterline/warehouse';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { until } from '../../../test/e2e/pipeline.js';
import { pausing } from '../../../test/interleaving.js';
import { storeEvents, WRITER } from '../../../test/late-events.js';
import { pricedEvent } from '../../../test/priced-event.js';
import { createTestDatabase, execute, type TestDatabase } from '../../../test/stack.js';
import { createIngestMetrics } from './metrics.js';
import { Repairer } from './repairer.js';

const HOUR = Date.UTC(2025, 9, 1);

let database: TestDatabase;
let registry: Registry;
let lines: Record<string, unknown>[];
beforeEach(async () => {
  database = await createTestDatabase();
  registry = new Registry();
  lines = [];
  await raiseWatermarks(database.warehouse, 'hourly', { sealingUntil: HOUR + 9 * MS_PER_HOUR });
});
afterEach(() => database.drop());

function openRepairer(warehouse: Warehouse = database.warehouse): Repairer {
  const log = pino({}, { write: (line: string) => lines.push(JSON.parse(line)) });
  return new Repairer({
    shard: undefined,
    writer: WRITER,
    everyMs: 50,
    warehouse,
    metrics: createIngestMetrics(registry),
    log,
  });
}

async function storeLate(): Promise<void> {
  await storeEvents(database.warehouse, [
    pricedEvent({ timestamp: HOUR }),
    pricedEvent({ timestamp: HOUR + MS_PER_HOUR }),
  ]);
}

async function openHours(): Promise<number> {
  return (await readOpenMarks(database.warehouse, WRITER)).hours;
}

async function metric(name: string): Promise<number | undefined> {
  const found = await registry.getSingleMetric(name)?.get();
  return found?.values.reduce((sum, { value }) => sum + value, 0);
}

it('repairs what is marked, before it runs and while it does', async () => {
  await storeLate();
  const repairer = openRepairer();
  repairer.run();
  try {
    await until('the first are repaired', 20_000, async () => (await openHours()) === 0);
    await storeLate();
    await until('and the next', 20_000, async () => (await openHours()) === 0);
    await until('and the gauge says so', 20_000, async () => (await metric('meterline_stale_hours')) === 0);
  } finally {
    await repairer.close();
  }
  expect(await metric('meterline_cells_repaired_total')).toBe(4);
  expect(lines).toEqual([]);
});

it('tries again what fails, with fewer hours at a time, and says so once', async () => {
  for (let mark = 0; mark < 3; mark += 1) await storeLate();
  await execute(database.warehouse, 'RENAME TABLE usage_hourly TO elsewhere');
  const statements: string[] = [];
  const repairer = openRepairer(pausing(database.warehouse, async (name) => void statements.push(name)));
  // Of 10,000 hours a step, so often halved that the first step has one mark.
  for (let time = 0; time < 14; time += 1) await repairer.repair();
  expect(await metric('meterline_repair_failures_total')).toBe(14);
  expect(await metric('meterline_stale_hours')).toBe(6);
  expect(lines.map(({ event }) => event)).toEqual(['outage']);
  await execute(database.warehouse, 'RENAME TABLE elsewhere TO usage_hourly');
  statements.length = 0;
  await repairer.repair();
  expect(await openHours()).toBe(0);
  expect(statements.filter((name) => name === 'remove_marks').length).toBeGreaterThan(1);
  expect(lines.map(({ event }) => event)).toEqual(['outage', 'outage_over']);
  await repairer.close();
});

it('repairs nothing twice at once, and nothing after its end', async () => {
  const repairer = openRepairer();
  const first = repairer.repair();
  await expect(repairer.repair()).rejects.toThrow('cannot go from repairing to repairing');
  await first;
  await repairer.close();
  await expect(repairer.repair()).rejects.toThrow('cannot go from stopped to repairing');
});

it('leaves the step under way when it is closed, and its marks to others', async () => {
  await storeLate();
  let goOn = () => {};
  const held = new Promise<void>((resolve) => {
    goOn = resolve;
  });
  let isHeld = false;
  const holding = pausing(database.warehouse, async (name) => {
    if (name !== 'remove_marks') return;
    isHeld = true;
    await held;
  });
  const repairer = openRepairer(holding);
  repairer.run();
  await until('it is about to remove the marks', 20_000, async () => isHeld);
  const closed = repairer.close();
  goOn();
  await closed;
  expect(await openHours()).toBe(2);
  expect(await metric('meterline_repair_failures_total')).toBe(0);
});
