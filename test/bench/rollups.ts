/**
 * Keeping rollups: sealing one large hour, and late events: what marking their hours costs before the acknowledgement, their
 * recomputation, and a query over dirty hours.
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import {
  EventRows,
  markDirtyHours,
  Names,
  type PricedEvent,
  prepareUsageEvents,
  raiseWatermarks,
  readBounds,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import type { Product } from '../harness/product.js';
import { processorMs } from '../harness/programs.js';
import { recomputeAll, select } from '../harness/stack.js';
import { fillUsage, SANDBOX } from './corpus.js';
import { withApi } from './dashboard.js';
import { count, type Figure, figure, limit, measureInTurn, median, ratio } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { metricsPath } from './queries.js';

const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
/** An event in three is of a group of its own, as measured of large accounts. */
const LARGE_HOUR = {
  definitions: ['intDiv(number, {accounts: UInt32}) % 370 AS box'],
  at: '{hour: Int64} + number % 3600 * 1000',
  columns: {
    ...SANDBOX,
    account_id: "concat('account-', leftPad(toString(number % {accounts: UInt32}), 6, '0'))",
    resource_name: "concat('sandbox-', toString(box % 50))",
    resource_uuid: 'toString(reinterpretAsUUID(sipHash128(box, number % {accounts: UInt32})))',
  },
};

/** An hour of half of `--events`, ten million at most, in accounts of a thousand events. */
export const sealing: Bench = {
  name: 'sealing',
  run: ({ fixture, signal, events: inAll }) =>
    fixture.withProduct('sealing', async ({ warehouse }) => {
      const events = Math.min(10_000_000, Math.ceil(inAll / 2));
      const accounts = Math.ceil(events / 1_000);
      // A single statement for all events would hold all names at once.
      for (let first = 0; first < events; first += 1_000_000) {
        signal.throwIfAborted();
        const rows = Math.min(1_000_000, events - first);
        await fillUsage(warehouse, LARGE_HOUR, { first, rows, accounts, hour: HOUR });
      }
      await raiseWatermarks([warehouse], 'hourly', { sealingUntil: HOUR, sealedUntil: HOUR });
      const processor = () => processorMs(fixture.serverPids.ClickHouse) ?? 0;
      const [before, started] = [processor(), performance.now()];
      const megabytes = await mostMemory(warehouse, sealNext([warehouse], HOUR + MS_PER_HOUR));
      const [took, spent] = [performance.now() - started, processor() - before];
      const what = `an hour of ${count(events)} events in ${count(accounts)} accounts`;
      return [
        figure(what, 'ms', [took], {
          beside: { 'processor time of ClickHouse': spent },
          goal: limit('≤', 60_000, 'ms'),
        }),
        figure(`${what}: memory of its statements`, 'MB', [megabytes], { goal: limit('≤', 1_000, 'MB') }),
      ];
    }),
};

/** @returns the most that statements of the database had at once while this lasted, sampled, in MB */
async function mostMemory(warehouse: Warehouse, work: Promise<unknown>): Promise<number> {
  const query = `SELECT sum(memory_usage) AS bytes FROM system.processes
    WHERE current_database = currentDatabase() AND query NOT LIKE '%system.processes%'`;
  let [isOver, most] = [false, 0];
  const ended = work.finally(() => {
    isOver = true;
  });
  while (!isOver) {
    const [row] = await select<{ bytes: string }>(warehouse, query);
    most = Math.max(most, Number(row?.bytes ?? 0));
    await delay(50);
  }
  await ended;
  return most / 1e6;
}

/** Late are events of each hour of the last day, of each account. Two accounts are asked about; one has dirty hours. */
const LATE = { accounts: 1_000, hours: 24, end: Date.UTC(2025, 8, 21) };
const SETUP = { days: 30, eventsPerHour: 50, dirtyHours: 100, queriesPerRun: 20 };
const RUNS = 15;

export const late: Bench = {
  name: 'late',
  run: (context) =>
    context.fixture.withProduct('late', async (product) => {
      const { warehouse } = product;
      for (const account of ['clean', 'dirty']) await prepareUsageEvents(usageOf(account))(warehouse);
      await prepareUsageEvents(lateEvents())(warehouse);
      while (await sealNext([warehouse], LATE.end));
      return [await acknowledgement(warehouse), await queryOfDirtyHours(context, product)];
    }),
};

/** The rows of so many events, each with what is said of its number. */
function rowsOf(events: number, eventOf: (number: number) => Partial<PricedEvent>): EventRows[] {
  const all = Array.from({ length: events }, (_, number) => pricedEvent(eventOf(number)));
  return [EventRows.of(all, new Names())];
}

function lateEvents(): EventRows[] {
  const { accounts, hours, end } = LATE;
  return rowsOf(accounts * hours, (number) => ({
    eventId: randomUUID(),
    accountId: `account-${number % accounts}`,
    timestamp: end - MS_PER_DAY + Math.floor(number / accounts) * MS_PER_HOUR,
  }));
}

function usageOf(accountId: string): EventRows[] {
  const { days, eventsPerHour } = SETUP;
  return rowsOf(days * 24 * eventsPerHour, (number) => ({
    ...{ eventId: randomUUID(), accountId, resourceName: `resource-${number % eventsPerHour}` },
    timestamp: LATE.end - (1 + Math.floor(number / eventsPerHour)) * MS_PER_HOUR,
  }));
}

async function acknowledgement(warehouse: Warehouse): Promise<Figure> {
  const insert = (isMarked: boolean) => async () => {
    const rows = lateEvents();
    const started = performance.now();
    await prepareUsageEvents(rows)(warehouse);
    if (isMarked) await markDirtyHours(warehouse, rows, (await readBounds(warehouse)).hourly.sealingUntil);
    return performance.now() - started;
  };
  const [marked = [], bare = []] = await measureInTurn([insert(true), insert(false)], { runs: RUNS });
  // Measures the recomputation of one insert, with nothing else to recompute.
  await recomputeAll(warehouse);
  await insert(true)();
  const started = performance.now();
  await recomputeAll(warehouse);
  const { accounts, hours } = LATE;
  const what = `${count(accounts * hours)} late events of ${count(accounts)} accounts, stored and marked`;
  const beside = { 'stored alone': median(bare), 'their recomputation, later': performance.now() - started };
  return figure(what, 'ms', marked, { beside, goal: ratio('≤', 2, median(bare)) });
}

async function queryOfDirtyHours(context: BenchContext, product: Product): Promise<Figure> {
  const { days, dirtyHours, queriesPerRun } = SETUP;
  const { end } = LATE;
  const hourOf = (number: number) => Math.floor((number * days * 24) / dirtyHours);
  const dirty = (number: number) => ({ accountId: 'dirty', timestamp: end - (1 + hourOf(number)) * MS_PER_HOUR });
  const { hourly } = await readBounds(product.warehouse);
  await markDirtyHours(product.warehouse, rowsOf(dirtyHours, dirty), hourly.sealingUntil);
  const window = { startTime: end - days * MS_PER_DAY, endTime: end };
  const [runs = [], clean = []] = await withApi(context, product, async (as) => {
    const asking = async (account: string) => {
      const ask = await as(account);
      const path = metricsPath(account, { window, resolution: 'daily', groupBy: ['resource_name'] });
      return async () => {
        const times: number[] = [];
        while (times.length < queriesPerRun) times.push(await ask(path));
        return median(times);
      };
    };
    return measureInTurn([await asking('dirty'), await asking('clean')]);
  });
  return figure(`by name, daily, ${days} d, ${dirtyHours} hours dirty`, 'ms', runs, {
    beside: { 'none dirty': median(clean) },
    goal: ratio('≤', 2, median(clean)),
  });
}
