/** The bytes of an event on disk, and the memory of the services. */
import { QUEUE_PREFIX } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { z } from 'zod';
import { select } from '../stack.js';
import type { Bench, BenchContext } from './bench.js';
import { askApi, CORPUS, largeCorpus } from './dashboard.js';
import { below, type Figure } from './figure.js';
import { HttpClient } from './http-client.js';
import { QUESTIONS } from './questions.js';
import { drainRate } from './usage-queue.js';

const DATABASE = 'footprint';
const MAX_BYTES_PER_EVENT = 40;
const MAX_RESIDENT_MB = 300;

export const footprint: Bench = {
  name: 'footprint',
  async run(context) {
    const { site, options } = context;
    const sizes = await bytesByTable(await largeCorpus(site, options.events));
    const { events } = sizes;
    const perEvent = [...sizes.tables].map(
      ([table, bytes]) => ({ what: table, value: bytes / events, unit: 'bytes' }) as const,
    );
    const total = perEvent.reduce((sum, { value }) => sum + value, 0);
    await exercise(context);
    return [
      {
        bench: 'footprint',
        what: 'on disk per event, all tables',
        value: total,
        unit: 'bytes',
        beside: perEvent.filter(({ value }) => value >= 0.01),
        reach: { text: `≤ ${MAX_BYTES_PER_EVENT} bytes`, met: total <= MAX_BYTES_PER_EVENT },
      },
      ...resident(site.peaks.ingest, 'ingest'),
      ...resident(site.peaks.query, 'query'),
    ];
  },
};

function resident(bytes: number | undefined, service: string): Figure[] {
  if (bytes === undefined) return [];
  const value = bytes / 2 ** 20;
  const what = `resident memory of ${service} at its peak in this run`;
  return [{ bench: 'footprint', what, value, unit: 'MB', reach: below(value, MAX_RESIDENT_MB, 'MB') }];
}

/** Makes both services work, in case no other bench ran. */
async function exercise({ site }: BenchContext): Promise<void> {
  const queue = site.queue(QUEUE_PREFIX);
  await site.warehouse(DATABASE);
  await site.withIngest({ CLICKHOUSE_DATABASE: DATABASE }, () => drainRate(queue, 400, 500));
  await site.drop(DATABASE);
  const http = new HttpClient();
  await site.withQuery(CORPUS, async ({ url }) => {
    const api = await askApi(site, url, http);
    for (const question of QUESTIONS) await api(question);
  });
  http.close();
}

const tableRow = z.object({ table: z.string(), bytes: z.coerce.number(), stored: z.coerce.number() });

/** Bytes of Meterline's own tables in the large data set, with the marks and indexes of their parts. */
async function bytesByTable(warehouse: Warehouse): Promise<{ tables: Map<string, number>; events: number }> {
  const found = await select(
    warehouse,
    `
SELECT table, sum(bytes_on_disk) AS bytes, sum(rows) AS stored
FROM system.parts
WHERE database = '${CORPUS}' AND active AND table NOT IN ('om_events', 'stored_answers')
GROUP BY table
ORDER BY bytes DESC`,
  );
  const rows = z.array(tableRow).parse(found);
  const events = rows.find(({ table }) => table === 'usage_events')?.stored ?? Number.NaN;
  return { tables: new Map(rows.map(({ table, bytes }) => [table, bytes])), events };
}
