/** Questions about an hour that is not sealed, of one large account: read from its events, in the table's order and in the one before. */
import type { EpochMs } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { execute, select } from '../stack.js';
import type { Bench, BenchContext } from './bench.js';
import { LARGE_ACCOUNT } from './corpus.js';
import { askApi } from './dashboard.js';
import { below, type Figure, median } from './figure.js';
import { HttpClient } from './http-client.js';
import { RUNS } from './measure.js';
import type { Question } from './questions.js';

/** Of `--events`: four million by default. */
const SHARE_OF_EVENTS = 5;
const INSERTS = 80;
const HOUR: EpochMs = Date.UTC(2025, 9, 20, 12);
const GOAL_MS = 300;
const MINUTE = 60_000;

const INSERT = `
INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, resource_uuid,
                          billing_dimension, usage, revision, voided, cost, price_revision, price_book)
WITH number + {first: UInt32} AS n, lower(hex(randomString(9))) AS random
SELECT {account: String}, {id}, toDateTime64({hour: UInt32} + n / {events: UInt32} * 3599, 3, 'UTC') AS timestamp,
       concat('workspace-', toString(n % 8)), 'sandbox', concat('sandbox-', toString(n % 400)),
       '', 'sandbox_compute_runtime_gbs', n % 977, 0, false, n % 977 * 0.0000115, 0, 0
FROM numbers({rows: UInt32})`;

interface Form {
  readonly name: string;
  readonly database: string;
  /** What makes the ids of events. */
  readonly ids: string;
  readonly sortingKey?: string;
}

/** Random but for the time of the event, as producers make them; ClickHouse's own have a counter. */
const VERSION_7 = `
       toUUID(concat(substring(lower(hex(toUnixTimestamp64Milli(timestamp))), 1, 8), '-',
                     substring(lower(hex(toUnixTimestamp64Milli(timestamp))), 9, 4), '-7',
                     substring(random, 1, 3), '-8', substring(random, 4, 3), '-', substring(random, 7, 12)))`;
const NEW: Form = { name: 'ids of version 7', database: 'open_hour', ids: VERSION_7 };
const OTHERS: readonly Form[] = [
  {
    ...NEW,
    name: '(a) the order before 0016',
    database: 'open_hour_before',
    sortingKey: 'account_id, event_hour, event_id',
  },
  { name: '(b) ids of version 4', database: 'open_hour_v4', ids: 'generateUUIDv4()' },
];

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
    const events = Math.ceil(options.events / SHARE_OF_EVENTS);
    const forms = [NEW, ...OTHERS];
    for (const form of forms) await fill(context, form, events);
    const http = new HttpClient();
    try {
      return await withApis(context, forms, http, async (apis) => {
        const figures: Figure[] = [];
        for (const question of QUESTIONS) figures.push(await ask(question, events, apis));
        return figures;
      });
    } finally {
      http.close();
      for (const { database } of forms) await site.drop(database);
    }
  },
};

/** In the order of their times, a batch after the other, as workers insert. */
async function fill({ site, signal }: BenchContext, form: Form, events: number): Promise<void> {
  const warehouse = await site.warehouse(form.database);
  if (form.sortingKey !== undefined) await reorder(warehouse, form.sortingKey);
  const rows = Math.ceil(events / INSERTS);
  const started = performance.now();
  for (let first = 0; first < events; first += rows) {
    signal.throwIfAborted();
    const query = INSERT.replace('{id}', form.ids);
    await execute(warehouse, query, { account: LARGE_ACCOUNT, hour: HOUR / 1000, first, rows, events });
  }
  site.say(`open hour, ${form.name}: ${events} events inserted in ${Math.round(performance.now() - started)} ms`);
}

async function reorder(warehouse: Warehouse, sortingKey: string): Promise<void> {
  const query =
    "SELECT create_table_query AS create FROM system.tables WHERE database = currentDatabase() AND name = 'usage_events'";
  const [table] = await select<{ create: string }>(warehouse, query);
  await execute(warehouse, 'DROP TABLE usage_events SYNC');
  await execute(
    warehouse,
    (table?.create ?? '').replace(/ORDER BY \(account_id.*\) SETTINGS/, `ORDER BY (${sortingKey}) SETTINGS`),
  );
}

type Ask = (question: Question) => Promise<number>;
interface Api {
  readonly form: Form;
  readonly ask: Ask;
}

/** A process for each database, all at once, so that they can be asked in turn. */
function withApis<T>(
  context: BenchContext,
  [form, ...others]: readonly Form[],
  http: HttpClient,
  work: (apis: readonly Api[]) => Promise<T>,
): Promise<T> {
  if (!form) return work([]);
  const askAll = async ({ url }: { readonly url: string }) => {
    const ask = await askApi(context.site, url, http);
    return withApis(context, others, http, (apis) => work([{ form, ask }, ...apis]));
  };
  // Nothing arrives, so an answer that is kept would stay the answer.
  return context.site.withQuery(form.database, askAll);
}

async function ask(question: Question, events: number, apis: readonly Api[]): Promise<Figure> {
  const runs = apis.map(({ form }) => ({ form, times: [] as number[] }));
  // The first one is to warm up.
  for (let run = 0; run <= RUNS; run += 1) {
    for (const [index, { ask }] of apis.entries()) {
      const time = await ask(question);
      if (run > 0) runs[index]?.times.push(time);
    }
  }
  const [mine, ...others] = runs;
  const value = median(mine?.times ?? []);
  return {
    bench: 'open-hour',
    what: `${question.title}, ${events.toLocaleString('en')} events`,
    value,
    unit: 'ms',
    runs: mine?.times ?? [],
    beside: others.map(({ form, times }) => ({ what: form.name, value: median(times), unit: 'ms' })),
    reach: below(value, GOAL_MS, 'ms'),
  };
}
