/** The repair of a late event in a sealed hour: the cells of its hour and its day are recomputed. */
import { randomUUID } from 'node:crypto';
import { type EpochMs, formatTimestamp, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import { EventRows, markStaleHours, Names, repairNext, sealNext, type Warehouse } from '@meterline/warehouse';
import { pricedEvent } from '../priced-event.js';
import { execute } from '../stack.js';
import type { Bench } from './bench.js';
import { CORPUS_START } from './corpus.js';
import { type Figure, median } from './figure.js';
import { checked, HttpClient } from './http-client.js';
import { measure } from './measure.js';
import { metricsPath } from './questions.js';
import type { Site } from './site.js';

const DATABASE = 'recompute';
const GROUPS = [10, 1_000, 100_000] as const;
/** Of every group in the hour. */
const EVENTS_PER_GROUP = 2;
const DAY: EpochMs = Math.floor(CORPUS_START / MS_PER_DAY) * MS_PER_DAY;
const HOUR: EpochMs = DAY + 12 * MS_PER_HOUR;

const FILL = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
SELECT {account: String}, generateUUIDv4(), toDateTime64({hour: UInt32}, 3, 'UTC') + number % 3600, 'production', 'sandbox',
       'sandbox', toString(reinterpretAsUUID(sipHash128(number % {groups: UInt32}))), 'sandbox_compute_runtime_gbs',
       number % 977, 0, false, number % 977 * 0.0000115, 0, 0
FROM numbers({events: UInt32})`;

export const recompute: Bench = {
  name: 'recompute',
  async run({ site, signal }) {
    const warehouse = await site.warehouse(DATABASE);
    for (const groups of GROUPS) {
      const events = groups * EVENTS_PER_GROUP;
      await execute(warehouse, FILL, { account: accountOf(groups), hour: HOUR / 1000, groups, events });
    }
    while (await sealNext(warehouse, DAY + 2 * MS_PER_DAY));
    try {
      return await site.withQuery(DATABASE, async ({ url }) => {
        const figures: Figure[] = [];
        for (const groups of GROUPS) {
          signal.throwIfAborted();
          figures.push(await recomputed(site, warehouse, url, groups));
        }
        return figures;
      });
    } finally {
      await site.drop(DATABASE);
    }
  },
};

function accountOf(groups: number): string {
  return `groups-${groups}`;
}

async function recomputed(site: Site, warehouse: Warehouse, url: string, groups: number): Promise<Figure> {
  const accountId = accountOf(groups);
  const writer = randomUUID();
  const marked = [EventRows.of([pricedEvent({ accountId, timestamp: HOUR })], new Names())];
  const runs = await measure(async () => {
    await markStaleHours(warehouse, writer, marked);
    return timed(() => repairNext(warehouse, writer));
  });
  const key = await site.createKey(accountId, 'bench-recompute');
  const http = new HttpClient();
  const ask = (groupBy: readonly ['resource_uuid'] | readonly []) => async () => {
    const window = { startTime: DAY, endTime: DAY + MS_PER_DAY };
    const path = metricsPath(accountId, { window, resolution: 'daily', groupBy });
    return checked(await http.send(`${url}${path}`, { authorization: `Bearer ${key}` })).ms;
  };
  const total = median(await measure(ask([])));
  const detail = median(await measure(ask(['resource_uuid'])));
  http.close();
  return {
    bench: 'recompute',
    what: `an hour of ${groups.toLocaleString('en')} groups and its day`,
    value: median(runs),
    unit: 'ms',
    runs,
    beside: [
      { what: 'the day, total', value: total, unit: 'ms' },
      { what: 'by uuid, first page', value: detail, unit: 'ms' },
    ],
    note: `${(groups * EVENTS_PER_GROUP).toLocaleString('en')} events on ${formatTimestamp(DAY)}`,
  };
}

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}
