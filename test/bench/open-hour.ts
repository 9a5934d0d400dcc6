/** Questions about an hour that is not sealed, of one large account: read from its events, whose ids are of version 7. */
import type { EpochMs } from '@meterline/catalog';
import { execute } from '../harness/stack.js';
import type { Bench, BenchContext } from './bench.js';
import { LARGE_ACCOUNT } from './corpus.js';
import { askApi } from './dashboard.js';
import { below, type Figure, median } from './figure.js';
import { HttpClient } from './http-client.js';
import { measure } from './measure.js';
import type { Question } from './questions.js';

/** Of `--events`, and no more than four million. */
const SHARE_OF_EVENTS = 5;
const MOST_EVENTS = 4_000_000;
const INSERTS = 80;
const DATABASE = 'open_hour';
const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
const GOAL_MS = 300;
const MINUTE = 60_000;

/** Ids are random but for the time of the event, as producers make them; ClickHouse's own have a counter. */
const INSERT = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
WITH number + {first: UInt32} AS n, lower(hex(randomString(9))) AS random
SELECT {account: String},
       toUUID(concat(substring(lower(hex(toUnixTimestamp64Milli(timestamp))), 1, 8), '-',
                     substring(lower(hex(toUnixTimestamp64Milli(timestamp))), 9, 4), '-7',
                     substring(random, 1, 3), '-8', substring(random, 4, 3), '-', substring(random, 7, 12))),
       toDateTime64({hour: UInt32} + n / {events: UInt32} * 3599, 3, 'UTC') AS timestamp,
       concat('workspace-', toString(n % 8)), 'sandbox', concat('sandbox-', toString(n % 400)),
       '', 'sandbox_compute_runtime_gbs', n % 977, 0, false, n % 977 * 0.0000115, 0, 0
FROM numbers({rows: UInt32})`;

const part = (from: number, to: number) => ({ startTime: HOUR + from * MINUTE, endTime: HOUR + to * MINUTE });
const QUESTION = { resolution: 'hourly', hasPages: false } as const;
const QUESTIONS: readonly Question[] = [
  { ...QUESTION, title: 'total', window: part(0, 60), groupBy: [] },
  { ...QUESTION, title: 'by workspace', window: part(0, 60), groupBy: ['workspace'] },
  { ...QUESTION, title: 'by name', window: part(0, 60), groupBy: ['resource_name'], hasPages: true },
  { ...QUESTION, title: 'by workspace, half an hour of it', window: part(15, 45), groupBy: ['workspace'] },
];

export const openHour: Bench = {
  name: 'open-hour',
  async run(context) {
    const { site, options } = context;
    const events = Math.min(MOST_EVENTS, Math.ceil(options.events / SHARE_OF_EVENTS));
    await fill(context, events);
    const http = new HttpClient();
    try {
      return await site.withQuery(DATABASE, async ({ url }) => {
        const ask = await askApi(site, url, http);
        const figures: Figure[] = [];
        for (const question of QUESTIONS) {
          const runs = await measure(() => ask(question));
          const what = `${question.title}, ${events.toLocaleString('en')} events`;
          figures.push({ what, value: median(runs), unit: 'ms', runs, reach: below(median(runs), GOAL_MS, 'ms') });
        }
        return figures;
      });
    } finally {
      http.close();
      await site.drop(DATABASE);
    }
  },
};

/** In the order of their times, a batch after the other, as workers insert. */
async function fill({ site, signal }: BenchContext, events: number): Promise<void> {
  const warehouse = await site.warehouse(DATABASE);
  const rows = Math.ceil(events / INSERTS);
  for (let first = 0; first < events; first += rows) {
    signal.throwIfAborted();
    await execute(warehouse, INSERT, { account: LARGE_ACCOUNT, hour: HOUR / 1000, first, rows, events });
  }
}
