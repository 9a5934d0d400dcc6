/**
 * Events that ClickHouse generates, faster than a client could send them; and the large data set, made of such events: ninety days of usage of
 * a hundred accounts, sealed as the product seals. Every hour has the same number of events. From a million events on, the groups do not
 * depend on that number, so data sets of different size differ in nothing else.
 */
import { setTimeout as delay } from 'node:timers/promises';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_DIMENSIONS,
  type BuiltInDimension,
  costOf,
  DEFAULT_PRICE_BOOK,
  type EpochMs,
  MS_PER_DAY,
  MS_PER_HOUR,
} from '@meterline/catalog';
import { raiseWatermarks, sealNext, type Warehouse } from '@meterline/warehouse';
import { execute, select } from '../harness/stack.js';
import { count } from './figure.js';
import type { BenchContext } from './fixture.js';

const DAYS = 90;
const HOURS = DAYS * 24;
/** At most this many rows in one insert, which makes a part as large as that of a backfill; and at least this many inserts. */
const CHUNK_ROWS = 1_000_000;
const MIN_STEPS = 20;

/** `account-07` */
export function accountName(number: number): string {
  return `account-${String(number).padStart(2, '0')}`;
}

/** Has 40 % of all events; the measured requests are about this account. */
export const LARGE_ACCOUNT = accountName(0);

/** The data ends yesterday at 18:00, so that every run includes a partial day. */
export const CORPUS_END = Math.floor(Date.now() / MS_PER_DAY) * MS_PER_DAY - 6 * MS_PER_HOUR;
const CORPUS_START = CORPUS_END - DAYS * MS_PER_DAY;
const UNSEALED_HOURS = 2;
export const SEALED_UNTIL = CORPUS_END - UNSEALED_HOURS * MS_PER_HOUR;

/** Events per second, in the first tenth of the inserts and in the last. */
interface Pace {
  readonly first: number;
  readonly last: number;
}

/** A loaded data set, with the speed of storing and of sealing its events. */
export interface Corpus {
  readonly warehouse: Warehouse;
  readonly storing: Pace;
  readonly sealing: Pace;
}

/** Loads the events into a new database, hour after hour, and seals the hours as they end, as in a service that has run for 90 days. */
export async function loadCorpus({ fixture, signal }: BenchContext, database: string, events: number): Promise<Corpus> {
  fixture.say(`loading ${count(events)} events`);
  const { warehouse } = await fixture.product(database);
  const perHour = Math.ceil(events / HOURS);
  const hoursAtOnce = Math.max(1, Math.min(Math.floor(CHUNK_ROWS / perHour), HOURS / MIN_STEPS));
  const [storing, sealing]: readonly [Step[], Step[]] = [[], []];
  for (let hour = 0; hour < HOURS; hour += hoursAtOnce) {
    signal.throwIfAborted();
    const hours = Math.min(hoursAtOnce, HOURS - hour);
    const rows = perHour * hours;
    const started = performance.now();
    await fillUsage(warehouse, USAGE, { start: CORPUS_START, first_hour: hour, per_hour: perHour, rows });
    const stored = performance.now();
    while (await sealNext([warehouse], CORPUS_START + (hour + hours - UNSEALED_HOURS) * MS_PER_HOUR));
    storing.push({ rows, ms: stored - started });
    sealing.push({ rows, ms: performance.now() - stored });
    if (storing.length % 20 === 0) fixture.say(`  ${count((hour + hours) * perHour)} events`);
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

/** SQL that looks up a value of the row's billing dimension. */
function ofDimension(value: (dimension: BuiltInDimension) => string | number): string {
  const values = BUILT_IN_DIMENSION_NAMES.map(value).map((each) => (typeof each === 'string' ? `'${each}'` : each));
  return `[${values.join(', ')}][dimension]`;
}

const resourceType = ofDimension((dimension) => BUILT_IN_DIMENSIONS[dimension].resourceType);
const isCount = ofDimension((dimension) => (BUILT_IN_DIMENSIONS[dimension].unit === 'count' ? 1 : 0));
/** USD for one unit, as doubles: exact costs do not matter here, only how many digits they have. */
const unitPrice = ofDimension((dimension) => {
  const price = DEFAULT_PRICE_BOOK.priceAt(LARGE_ACCOUNT, dimension, CORPUS_START);
  if (!price) throw new Error(`the example book has no price for ${dimension}`);
  // The cost of a billion units: that of one unit would have too few digits. Usage is scaled by 10^9, cost by 10^12.
  return Number(costOf(10n ** 18n, price)) / 1e21;
});

/**
 * Event `number` of its hour, in the order of time. The large account uses the same 150 resources in every hour; they are
 * renamed after 45 days. Every other account uses 12 resources, which change from hour to hour. A uuid lives for 3 to 96
 * hours.
 */
const USAGE: UsageSql = {
  definitions: [
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
    `toDecimal64(if(${isCount} = 1, 1 + lot % 1000, (lot % 3600000) / 1000), 4) AS amount`,
  ],
  at: '{start: Int64} + hour * 3600000 + intDiv(in_hour * 3600000, {per_hour: UInt32})',
  columns: {
    account_id: "concat('account-', leftPad(toString(account), 2, '0'))",
    workspace: "['production', 'staging', 'research', 'sandbox', 'internal'][1 + resource % 5]",
    resource_type: resourceType,
    resource_name: `concat(${resourceType}, '-', toString(resource + 200 * intDiv(hour, 1080)))`,
    resource_uuid: 'toString(reinterpretAsUUID(sipHash128(account, resource, intDiv(hour, lifetime))))',
    billing_dimension: ofDimension((dimension) => dimension),
    usage: 'amount',
    cost: `toDecimal128(round(toFloat64(amount) * ${unitPrice}, 12), 12)`,
  },
};

/** Columns that most benches have in common: accounts with one dimension. */
export const SANDBOX = {
  ...{ workspace: "'production'", resource_type: "'sandbox'", resource_name: "'builder'", resource_uuid: "''" },
  billing_dimension: "'sandbox_compute_runtime_gbs'",
  ...{ usage: 'number % 977', cost: 'number % 977 * 0.0000115' },
};

/** SQL expressions that use a row's `number` and parameters. */
export interface UsageSql {
  /** Definitions for the other expressions, as in WITH. */
  readonly definitions?: readonly string[];
  /** Epoch milliseconds. */
  readonly at: string;
  /** By the name of the column. */
  readonly columns: Readonly<Record<'account_id' | keyof typeof SANDBOX, string>>;
}

/**
 * Inserts generated events. Their ids are UUIDs of version 7 with the time of the event and random bits, as producers make them;
 * ClickHouse's own function would add a counter. The first half of a UUID's text is the lower half of its number.
 * @param parameters `rows` numbers from `first` on, and the parameters of the expressions
 */
export async function fillUsage(
  warehouse: Warehouse,
  { definitions = [], at, columns }: UsageSql,
  { first = 0, ...parameters }: Readonly<Record<string, string | number>> & { readonly rows: number },
): Promise<void> {
  const noise = [`toInt64(${at}) AS at_ms`, 'sipHash64(number, at_ms) AS noise', 'sipHash64(noise) AS more_noise'];
  const query = `
INSERT INTO usage_events
  (event_id, timestamp, revision, voided, price_revision, price_book, ${Object.keys(columns).join(', ')})
WITH
  ${[...definitions, ...noise].join(',\n  ')}
SELECT
  reinterpret(
    bitOr(bitShiftLeft(toUInt128(bitOr(bitAnd(more_noise, 0x3fffffffffffffff), 0x8000000000000000)), 64),
          toUInt128(bitOr(bitShiftLeft(toUInt64(at_ms), 16), 0x7000 + noise % 4096))), 'UUID'),
  fromUnixTimestamp64Milli(at_ms, 'UTC'), 0, false, 0, 0,
  ${Object.values(columns).join(',\n  ')}
FROM numbers({first: UInt64}, {rows: UInt64})
SETTINGS max_insert_threads = 2, min_insert_block_size_rows = 1000000, max_memory_usage = 0`;
  await execute(warehouse, query, { first, ...parameters });
}

/** Seals the hours and days from `start` to `end`, as if there were none before. */
export async function sealFrom(warehouse: Warehouse, start: EpochMs, end: EpochMs, signal: AbortSignal): Promise<void> {
  for (const grain of ['hourly', 'daily'] as const) {
    await raiseWatermarks([warehouse], grain, { sealingUntil: start, sealedUntil: start });
  }
  while (await sealNext([warehouse], end)) signal.throwIfAborted();
}
