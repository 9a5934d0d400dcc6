/** Late events: what marking their hours costs before the acknowledgement, a question over marked hours, and the repair. */
import { randomUUID } from 'node:crypto';
import { type EpochMs, MS_PER_DAY, MS_PER_HOUR } from '@meterline/catalog';
import {
  EventRows,
  markDirtyHours,
  Names,
  type PricedEvent,
  prepareUsageEvents,
  recomputeDirtyHours,
  sealNext,
  type Warehouse,
} from '@meterline/warehouse';
import { pricedEvent } from '../harness/events.js';
import type { Bench } from './bench.js';
import { atMost, type Figure, median } from './figure.js';
import { checked, HttpClient } from './http-client.js';
import { measureInTurn } from './measure.js';
import { ProcessorTimes } from './processor-times.js';
import { metricsPath } from './questions.js';
import type { Site } from './site.js';

const DATABASE = 'late';
const ACCOUNTS = 1_000;
const DAY: EpochMs = Date.UTC(2025, 8, 20);
const HOURS = 24;
/** The account that is asked about, with usage in so many hours, and the same that has marks. */
const REPAIRED = 'repaired';
const MARKED = 'marked';
const DAYS_ASKED = 30;
const MARKED_HOURS = 100;
const EVENTS_PER_HOUR = 50;
const RUNS = 15;
const QUESTION_RUNS = 7;
const QUESTIONS_PER_RUN = 20;

export const late: Bench = {
  name: 'late',
  async run({ site }) {
    const warehouse = await site.warehouse(DATABASE);
    try {
      for (const accountId of [REPAIRED, MARKED]) await store(warehouse, usageOf(accountId));
      await store(warehouse, newEvents());
      while (await sealNext([warehouse], DAY + MS_PER_DAY));
      return [...(await acknowledgement(warehouse)), ...(await question(site, warehouse))];
    } finally {
      await site.drop(DATABASE);
    }
  },
};

function rowsOf(events: readonly PricedEvent[]): EventRows[] {
  return [EventRows.of(events, new Names())];
}

async function store(warehouse: Warehouse, events: readonly PricedEvent[]): Promise<void> {
  await prepareUsageEvents(rowsOf(events))(warehouse);
}

/** An event of each hour of each account. */
function newEvents(): PricedEvent[] {
  return Array.from({ length: ACCOUNTS * HOURS }, (_, number) =>
    pricedEvent({
      eventId: randomUUID(),
      accountId: `account-${number % ACCOUNTS}`,
      timestamp: DAY + Math.floor(number / ACCOUNTS) * MS_PER_HOUR,
    }),
  );
}

function usageOf(accountId: string): PricedEvent[] {
  return Array.from({ length: DAYS_ASKED * HOURS * EVENTS_PER_HOUR }, (_, number) =>
    pricedEvent({
      eventId: randomUUID(),
      accountId,
      resourceName: `resource-${number % EVENTS_PER_HOUR}`,
      timestamp: DAY + MS_PER_DAY - (1 + Math.floor(number / EVENTS_PER_HOUR)) * MS_PER_HOUR,
    }),
  );
}

async function acknowledgement(warehouse: Warehouse): Promise<Figure[]> {
  const insert = async (isMarked: boolean) => {
    const rows = rowsOf(newEvents());
    const started = performance.now();
    await prepareUsageEvents(rows)(warehouse);
    if (isMarked) await markDirtyHours(warehouse, rows);
    return performance.now() - started;
  };
  const [marked, bare] = await measureInTurn(
    () => insert(true),
    () => insert(false),
    { runs: RUNS },
  );
  // Of one insert, with nothing else to recompute.
  await recomputed(warehouse);
  await insert(true);
  const recomputation = await recomputed(warehouse);
  const ratio = median(marked) / median(bare);
  return [
    {
      what: `${(ACCOUNTS * HOURS).toLocaleString('en')} late events of ${ACCOUNTS.toLocaleString('en')} accounts, stored and marked`,
      value: median(marked),
      unit: 'ms',
      runs: marked,
      beside: [
        { what: 'stored alone', value: median(bare), unit: 'ms' },
        { what: 'their recomputation, later', value: recomputation, unit: 'ms' },
      ],
      reach: atMost(ratio, 2),
    },
  ];
}

/** @returns how long it took to recompute all dirty hours, in milliseconds */
async function recomputed(warehouse: Warehouse): Promise<number> {
  const started = performance.now();
  while ((await recomputeDirtyHours(warehouse)).marks > 0);
  return performance.now() - started;
}

async function question(site: Site, warehouse: Warehouse): Promise<Figure[]> {
  const dirty = Array.from({ length: MARKED_HOURS }, (_, number) =>
    pricedEvent({
      accountId: MARKED,
      timestamp: DAY + MS_PER_DAY - (1 + Math.floor((number * DAYS_ASKED * HOURS) / MARKED_HOURS)) * MS_PER_HOUR,
    }),
  );
  await markDirtyHours(warehouse, rowsOf(dirty));
  return site.withQuery(DATABASE, ({ url, pid }) =>
    ask(site, url, { ClickHouse: site.clickhouse.pid, 'the API': pid }),
  );
}

async function ask(site: Site, url: string, pids: Readonly<Record<string, number>>): Promise<Figure[]> {
  const http = new HttpClient();
  const [ofMarked, ofFresh] = [new ProcessorTimes(pids), new ProcessorTimes(pids)];
  const asking = async (accountId: string, times: ProcessorTimes) => {
    const window = { startTime: DAY + MS_PER_DAY - DAYS_ASKED * MS_PER_DAY, endTime: DAY + MS_PER_DAY };
    const authorization = `Bearer ${await site.createKey(accountId, 'bench-late')}`;
    const path = metricsPath(accountId, { window, resolution: 'daily', groupBy: ['resource_name'] });
    return async () => {
      const asked: number[] = [];
      const stop = times.start(QUESTIONS_PER_RUN);
      for (let n = 0; n < QUESTIONS_PER_RUN; n += 1) {
        asked.push(checked(await http.send(`${url}${path}`, { authorization })).ms);
      }
      stop();
      return median(asked);
    };
  };
  try {
    const [marked, fresh] = await measureInTurn(await asking(MARKED, ofMarked), await asking(REPAIRED, ofFresh), {
      runs: QUESTION_RUNS,
    });
    return [
      {
        what: `by name, daily, ${DAYS_ASKED} d, ${MARKED_HOURS} hours marked`,
        value: median(marked),
        unit: 'ms',
        runs: marked,
        beside: [{ what: 'none marked', value: median(fresh), unit: 'ms' }],
        reach: atMost(median(marked) / median(fresh), 2),
      },
      ...ofMarked.figures(`a question, ${MARKED_HOURS} hours marked`),
      ...ofFresh.figures('a question, none marked'),
    ];
  } finally {
    http.close();
  }
}
