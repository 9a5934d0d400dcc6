/**
 * Ninety days of usage of a hundred accounts, made inside ClickHouse and sealed as the product seals. Every hour has the
 * same number of events. The groups do not depend on that number, from a million events on, so that data sets of different size
 * differ in nothing else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  BILLING_DIMENSIONS,
  costOf,
  DEFAULT_PRICE_BOOK,
  DIMENSIONS,
  MS_PER_DAY,
  MS_PER_HOUR,
} from '@meterline/catalog';
import { sealNext, type Warehouse } from '@meterline/warehouse';
import { select } from '../harness/stack.js';
import { fillUsage } from './fill.js';
import type { BenchContext } from './fixture.js';

const DAYS = 90;
const HOURS = DAYS * 24;
/** Rows of one insert, which makes a part as large as a backfill's, and how many inserts there are at least. */
const CHUNK_ROWS = 1_000_000;
const MIN_STEPS = 20;

/** Has 40 % of all events; the measured requests are about this account. */
export const LARGE_ACCOUNT = 'account-00';

/** The data ends yesterday at 18:00, so that every run includes a partial day. */
export const CORPUS_END = Math.floor(Date.now() / MS_PER_DAY) * MS_PER_DAY - 6 * MS_PER_HOUR;
const CORPUS_START = CORPUS_END - DAYS * MS_PER_DAY;
const UNSEALED_HOURS = 2;
export const SEALED_UNTIL = CORPUS_END - UNSEALED_HOURS * MS_PER_HOUR;

/** Events a second, over the first tenth of the events and over the last. */
interface Pace {
  readonly first: number;
  readonly last: number;
}

/** A loaded data set: how fast its events were stored, and how fast they were sealed. */
export interface Corpus {
  readonly warehouse: Warehouse;
  readonly storing: Pace;
  readonly sealing: Pace;
}

/** Loads the events into a new database, hour after hour, and seals the hours as they end, as in a service that has run for 90 days. */
export async function loadCorpus({ fixture, signal }: BenchContext, database: string, events: number): Promise<Corpus> {
  fixture.say(`loading ${events.toLocaleString('en')} events`);
  const { warehouse } = await fixture.product(database);
  const perHour = Math.ceil(events / HOURS);
  const hoursAtOnce = Math.max(1, Math.min(Math.floor(CHUNK_ROWS / perHour), HOURS / MIN_STEPS));
  const [storing, sealing]: readonly [Step[], Step[]] = [[], []];
  for (let hour = 0; hour < HOURS; hour += hoursAtOnce) {
    signal.throwIfAborted();
    const hours = Math.min(hoursAtOnce, HOURS - hour);
    const rows = perHour * hours;
    const started = performance.now();
    await fillUsage(warehouse, COLUMNS, DEFINITIONS, {
      start: CORPUS_START,
      first_hour: hour,
      per_hour: perHour,
      rows,
    });
    const stored = performance.now();
    while (await sealNext([warehouse], CORPUS_START + (hour + hours - UNSEALED_HOURS) * MS_PER_HOUR));
    storing.push({ rows, ms: stored - started });
    sealing.push({ rows, ms: performance.now() - stored });
    if (storing.length % 20 === 0) fixture.say(`  ${((hour + hours) * perHour).toLocaleString('en')} events`);
  }
  await settle(warehouse);
  return { warehouse, storing: paceOf(storing), sealing: paceOf(sealing) };
}

interface Step {
  readonly rows: number;
  readonly ms: number;
}

function paceOf(steps: readonly Step[]): Pace {
  const tenth = Math.ceil(steps.length / 10);
  const rate = (some: readonly Step[]) => {
    const sum = (of: 'rows' | 'ms') => some.reduce((total, step) => total + step[of], 0);
    return (1000 * sum('rows')) / sum('ms');
  };
  return { first: rate(steps.slice(0, tenth)), last: rate(steps.slice(-tenth)) };
}

/** Waits, up to ten minutes, until background merges have ended, because they would slow what is measured. */
async function settle(warehouse: Warehouse): Promise<void> {
  for (let waited = 0; waited < 1_200; waited += 1) {
    const [row] = await select(warehouse, 'SELECT count() AS merges FROM system.merges');
    if (row?.merges === '0') return;
    await delay(500);
  }
}

const dimensions = BILLING_DIMENSIONS.map((dimension) => `'${dimension}'`).join(', ');
const types = BILLING_DIMENSIONS.map((dimension) => `'${DIMENSIONS[dimension].resourceType}'`).join(', ');
const counted = BILLING_DIMENSIONS.map((dimension) => (DIMENSIONS[dimension].unit === 'count' ? 1 : 0)).join(', ');
/** Scaled by 10^9, as usage is. */
const A_BILLION = 10n ** 18n;

/** USD for one unit, as doubles: exact costs do not matter here, only how many digits they have. */
const unitPrices = BILLING_DIMENSIONS.map((dimension) => {
  const price = DEFAULT_PRICE_BOOK.priceAt(LARGE_ACCOUNT, dimension, CORPUS_START);
  if (!price) throw new Error(`the example book has no price for ${dimension}`);
  return String(Number(costOf(A_BILLION, price)) / 1e21);
}).join(', ');

/**
 * Event `number` of its hour, in the order of time. The large account uses the same 150 resources in every hour; they are
 * renamed after 45 days. Every other account uses 12 resources, which change from hour to hour. A uuid lives for 3 to 96
 * hours.
 */
const DEFINITIONS = [
  '{first_hour: UInt32} + intDiv(number, {per_hour: UInt32}) AS hour',
  'number % {per_hour: UInt32} AS in_hour',
  'in_hour % 5 < 2 AS is_large',
  'intDiv(in_hour, 5) * 3 + in_hour % 5 - 2 AS of_others',
  'if(is_large, 0, 1 + of_others % 99) AS account',
  'if(is_large, intDiv(in_hour, 5) * 2 + in_hour % 5, intDiv(of_others, 99)) AS of_account',
  'if(is_large, of_account % 150, (of_account % 12 + hour) % 24 + account) AS resource',
  'sipHash64(hour, in_hour) AS lot',
  '1 + intDiv(resource, 5) % 12 AS dimension',
  '[3, 12, 24, 96][1 + resource % 4] AS lifetime',
  `toDecimal64(if([${counted}][dimension] = 1, 1 + lot % 1000, (lot % 3600000) / 1000), 4) AS amount`,
];
const COLUMNS = {
  account: "concat('account-', leftPad(toString(account), 2, '0'))",
  at: '{start: Int64} + hour * 3600000 + intDiv(in_hour * 3600000, {per_hour: UInt32})',
  workspace: "['production', 'staging', 'research', 'sandbox', 'internal'][1 + resource % 5]",
  resourceType: `[${types}][dimension]`,
  resourceName: `concat([${types}][dimension], '-', toString(resource + 200 * intDiv(hour, 1080)))`,
  resourceUuid: 'toString(reinterpretAsUUID(sipHash128(account, resource, intDiv(hour, lifetime))))',
  billingDimension: `[${dimensions}][dimension]`,
  usage: 'amount',
  cost: `toDecimal128(round(toFloat64(amount) * [${unitPrices}][dimension], 12), 12)`,
};
