/** Late events: what marking their hours costs before the acknowledgement, their recomputation, and a query over dirty hours. */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import {
  EventRows,
  markDirtyHours,
  Names,
  type PricedEvent,
  prepareUsageEvents,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import { recomputeAll } from '../harness/late-events.js';
import { atMost, type Figure, measureInTurn, median, medianOf } from './figure.js';
import type { Bench, BenchContext } from './fixture.js';
import { HttpClient } from './http.js';
import { metricsPath } from './queries.js';

const DATABASE = 'late';
const ACCOUNTS = 1_000;
const END: EpochMs = Date.UTC(2025, 8, 21);
const HOURS = 24;
/** The account that is asked about, with usage in so many hours, and the same that has dirty ones. */
const CLEAN = 'clean';
const DIRTY = 'dirty';
const DAYS_ASKED = 30;
const DIRTY_HOURS = 100;
const EVENTS_PER_HOUR = 50;
const RUNS = 15;
const QUERIES_PER_RUN = 20;

export const late: Bench = {
  name: 'late',
  async run(context) {
    const { warehouse } = await context.fixture.product(DATABASE);
    for (const accountId of [CLEAN, DIRTY]) await prepareUsageEvents(rowsOf(usageOf(accountId)))(warehouse);
    await prepareUsageEvents(rowsOf(newEvents()))(warehouse);
    while (await sealNext([warehouse], END));
    const figures = [await acknowledgement(warehouse), await query(context, warehouse)];
    await context.fixture.drop(DATABASE);
    return figures;
  },
};

function rowsOf(events: readonly PricedEvent[]): EventRows[] {
  return [EventRows.of(events, new Names())];
}

/** An event of each hour of the last day, of each account. */
function newEvents(): PricedEvent[] {
  return Array.from({ length: ACCOUNTS * HOURS }, (_, number) =>
    pricedEvent({
      eventId: randomUUID(),
      accountId: `account-${number % ACCOUNTS}`,
      timestamp: END - MS_PER_DAY + Math.floor(number / ACCOUNTS) * MS_PER_HOUR,
    }),
  );
}

function usageOf(accountId: string): PricedEvent[] {
  return Array.from({ length: DAYS_ASKED * HOURS * EVENTS_PER_HOUR }, (_, number) =>
    pricedEvent({
      eventId: randomUUID(),
      accountId,
      resourceName: `resource-${number % EVENTS_PER_HOUR}`,
      timestamp: END - (1 + Math.floor(number / EVENTS_PER_HOUR)) * MS_PER_HOUR,
    }),
  );
}

async function acknowledgement(warehouse: Warehouse): Promise<Figure> {
  const insert = (isMarked: boolean) => async () => {
    const rows = rowsOf(newEvents());
    const started = performance.now();
    await prepareUsageEvents(rows)(warehouse);
    if (isMarked) await markDirtyHours(warehouse, rows);
    return performance.now() - started;
  };
  const [marked, bare] = await measureInTurn(insert(true), insert(false), { runs: RUNS });
  // That of one insert, with nothing else to recompute.
  await recomputeAll(warehouse);
  await insert(true)();
  const started = performance.now();
  await recomputeAll(warehouse);
  const what = `${(ACCOUNTS * HOURS).toLocaleString('en')} late events of ${ACCOUNTS.toLocaleString('en')} accounts, stored and marked`;
  return {
    ...medianOf(what, 'ms', marked),
    beside: [
      { what: 'stored alone', value: median(bare), unit: 'ms' },
      { what: 'their recomputation, later', value: performance.now() - started, unit: 'ms' },
    ],
    reach: atMost(median(marked) / median(bare), 2),
  };
}

async function query({ fixture }: BenchContext, warehouse: Warehouse): Promise<Figure> {
  const hourOf = (number: number) => Math.floor((number * DAYS_ASKED * HOURS) / DIRTY_HOURS);
  const dirty = Array.from({ length: DIRTY_HOURS }, (_, number) =>
    pricedEvent({ accountId: DIRTY, timestamp: END - (1 + hourOf(number)) * MS_PER_HOUR }),
  );
  await markDirtyHours(warehouse, rowsOf(dirty));
  const product = await fixture.product(DATABASE);
  const [runs, clean] = await fixture.withQuery(product, async ({ url }) => {
    const http = new HttpClient();
    const window = { startTime: END - DAYS_ASKED * MS_PER_DAY, endTime: END };
    const asking = async (account: string) => {
      const path = metricsPath(account, { window, resolution: 'daily', groupBy: ['resource_name'] });
      const key = await product.key(account);
      return async () => {
        const times: number[] = [];
        while (times.length < QUERIES_PER_RUN) times.push((await http.ok(`${url}${path}`, key)).ms);
        return median(times);
      };
    };
    return measureInTurn(await asking(DIRTY), await asking(CLEAN)).finally(() => http.close());
  });
  return {
    ...medianOf(`by name, daily, ${DAYS_ASKED} d, ${DIRTY_HOURS} hours dirty`, 'ms', runs),
    beside: [{ what: 'none dirty', value: median(clean), unit: 'ms' }],
    reach: atMost(median(runs) / median(clean), 2),
  };
}
