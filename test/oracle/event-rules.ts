/**
 * Which events are accepted, what is stored for them, and what they cost under a price book. Source: docs/guides/emitting.md and
 * docs/concepts.md, rule by rule.
 */
import { z } from 'zod';
import { instantOf } from './calendar.js';
import { decimalOf, decimalOfPrinted, type Fraction, isWhole, roundHalfEven } from './exact.js';

export const COST_DECIMALS = 12;
export const USAGE_DECIMALS = 9;

interface OracleDimension {
  readonly resourceType: string;
  readonly counts: boolean;
  readonly amount: string;
  readonly per: string;
}

/** The dimensions of the platform, with the prices of the example book. A GB-month is 730 hours: 2,628,000 GB-seconds. */
export const DIMENSIONS: Readonly<Record<string, OracleDimension>> = {
  sandbox_compute_runtime_gbs: { resourceType: 'sandbox', counts: false, amount: '0.0000115', per: '1' },
  sandbox_image_storage_gbs: { resourceType: 'sandbox', counts: false, amount: '0.045', per: '2628000' },
  sandbox_snapshot_storage_gbs: { resourceType: 'sandbox', counts: false, amount: '0.20', per: '2628000' },
  agent_compute_runtime_gbs: { resourceType: 'agent', counts: false, amount: '0.0000115', per: '1' },
  agent_image_storage_gbs: { resourceType: 'agent', counts: false, amount: '0.045', per: '2628000' },
  agent_async_requests_count: { resourceType: 'agent', counts: true, amount: '0.20', per: '1000000' },
  job_compute_runtime_gbs: { resourceType: 'job', counts: false, amount: '0.000006', per: '1' },
  job_image_storage_gbs: { resourceType: 'job', counts: false, amount: '0.045', per: '2628000' },
  mcp_server_compute_runtime_gbs: { resourceType: 'mcp_server', counts: false, amount: '0.000007', per: '1' },
  mcp_server_image_storage_gbs: { resourceType: 'mcp_server', counts: false, amount: '0.045', per: '2628000' },
  volume_storage_gbs: { resourceType: 'volume', counts: false, amount: '0.12', per: '2628000' },
  custom_domain_active_time_hours: { resourceType: 'custom_domain', counts: false, amount: '20', per: '730' },
};

export const RESOURCE_TYPES = ['sandbox', 'agent', 'job', 'mcp_server', 'volume', 'custom_domain'];

/** What the catalog file of a platform adds: a dimension of a new resource type in a new unit, and one that counts. */
export const ADDED_DIMENSIONS: typeof DIMENSIONS = {
  gpu_cluster_runtime_seconds: { resourceType: 'gpu_cluster', counts: false, amount: '0.0003', per: '0.7' },
  agent_tool_calls_count: { resourceType: 'agent', counts: true, amount: '0.01', per: '3' },
};
export const ALL_DIMENSIONS: typeof DIMENSIONS = { ...DIMENSIONS, ...ADDED_DIMENSIONS };
export const ALL_RESOURCE_TYPES = [...RESOURCE_TYPES, 'gpu_cluster'];

/** The content of the file that CATALOG names. */
export const CATALOG = {
  dimensions: Object.entries(ADDED_DIMENSIONS).map(([billingDimension, { resourceType, counts }]) => {
    return { billingDimension, resourceType, unit: counts ? 'count' : 'seconds' };
  }),
};

/** The part of an event that a revision may change. */
export interface Payload {
  readonly workspace: string;
  readonly resourceType: string;
  readonly resourceName: string;
  readonly resourceUuid: string;
  readonly billingDimension: string;
  /** × 10^9 */
  readonly usage: bigint;
  /** Epoch milliseconds. */
  readonly timestamp: number;
  readonly voided: boolean;
}

export interface UnderstoodEvent {
  readonly accountId: string;
  readonly eventId: string;
  readonly revision: number;
  readonly payload: Payload;
}

/** In a job, or a request to the collector. */
export const MOST_EVENTS = 5_000;
const TEN_MINUTES = 600_000;
const USAGE_LIMIT = 10n ** 15n;

const name = z.string().refine(isName);
const fields = z.strictObject({
  eventId: z.string().regex(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i),
  accountId: name,
  workspace: name,
  resourceType: z.string(),
  resourceName: name,
  resourceUuid: z.literal('').or(name).nullish(),
  // An enum, no look-up in the object: `toString` is no dimension, though every object has one.
  billingDimension: z.enum(Object.keys(ALL_DIMENSIONS)),
  usage: z.string().or(z.number()),
  timestamp: z.string(),
  revision: z.int().min(0).max(65_535).default(0),
  void: z.boolean().default(false),
});

/** Undefined when the event is rejected. @param now when the worker takes the event from the queue */
export function understand(event: unknown, now: number): UnderstoodEvent | undefined {
  const { data } = fields.safeParse(event);
  if (!data) return undefined;
  const { accountId, eventId, revision, void: voided, ...sent } = data;
  const dimension = ALL_DIMENSIONS[sent.billingDimension];
  const usage = usageOf(sent.usage, dimension?.counts === true);
  const timestamp = instantOf(sent.timestamp);
  if (dimension?.resourceType !== sent.resourceType || usage === undefined || timestamp === undefined) return undefined;
  if (timestamp < 0 || timestamp > now + TEN_MINUTES) return undefined;
  const payload = { ...sent, resourceUuid: sent.resourceUuid ?? '', usage, timestamp, voided };
  return { accountId, eventId: eventId.toLowerCase(), revision, payload };
}

/** 1 to 256 code points, none of them a control character or half of a pair. */
export function isName(text: string): boolean {
  const codePoints = Array.from(text, (character) => character.codePointAt(0) ?? 0);
  const isAllowed = (code: number) => code >= 0x20 && (code < 0x7f || code > 0x9f) && (code < 0xd800 || code > 0xdfff);
  return codePoints.length >= 1 && codePoints.length <= 256 && codePoints.every(isAllowed);
}

/** × 10^9. The limit and the rule for counts apply to the value as sent, before it is rounded. */
function usageOf(value: number | string, counts: boolean): bigint | undefined {
  const sent = typeof value === 'string' ? decimalOf(value) : decimalOfPrinted(value);
  if (!sent || sent.numerator >= USAGE_LIMIT * sent.denominator) return undefined;
  return counts && !isWhole(sent) ? undefined : roundHalfEven(sent, USAGE_DECIMALS);
}

/** The events of a job's data; undefined for a job that is rejected whole. */
export function eventsOfJob(data: unknown): readonly unknown[] | undefined {
  if (!isRecord(data)) return undefined;
  if (!Object.hasOwn(data, 'events')) return [data];
  const { events } = data;
  if (Object.keys(data).length > 1 || !Array.isArray(events)) return undefined;
  return events.length >= 1 && events.length <= MOST_EVENTS ? events : undefined;
}

/** Undefined for what is no JSON. */
export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

interface OraclePrice {
  readonly billingDimension: string;
  readonly effectiveFrom: string;
  readonly amount: string;
  readonly per?: string;
}

/** The content of the file that PRICE_BOOK names. */
export interface OraclePriceBook {
  readonly version: number;
  readonly currency: 'USD';
  readonly prices: readonly OraclePrice[];
  readonly overrides?: readonly (OraclePrice & { readonly accountId: string })[];
}

/** The price book that applies when PRICE_BOOK is not set. */
export const EXAMPLE_BOOK: OraclePriceBook = {
  version: 0,
  currency: 'USD',
  prices: pricesOf(DIMENSIONS),
};

function pricesOf(dimensions: typeof DIMENSIONS): OraclePrice[] {
  return Object.entries(dimensions).map(([billingDimension, { amount, per }]) => ({
    billingDimension,
    effectiveFrom: '1970-01-01T00:00:00Z',
    amount,
    per,
  }));
}

/** USD × 10^12 for usage × 10^9; undefined before the dimension's first price. */
export function costUnder(
  book: OraclePriceBook,
  used: { accountId: string; billingDimension: string; timestamp: number; usage: bigint },
): bigint | undefined {
  const own = (book.overrides ?? []).filter(({ accountId }) => accountId === used.accountId);
  const price = latestPrice(own, used) ?? latestPrice(book.prices, used);
  if (!price) return undefined;
  const amount = mustBeDecimal(price.amount);
  const per = mustBeDecimal(price.per ?? '1');
  const cost = {
    numerator: used.usage * amount.numerator * per.denominator,
    denominator: 10n ** BigInt(USAGE_DECIMALS) * amount.denominator * per.numerator,
  };
  return roundHalfEven(cost, COST_DECIMALS);
}

function latestPrice(prices: readonly OraclePrice[], used: { billingDimension: string; timestamp: number }) {
  return prices
    .map((price) => ({ ...price, from: instantOf(price.effectiveFrom) ?? Number.NaN }))
    .filter(({ billingDimension, from }) => billingDimension === used.billingDimension && from <= used.timestamp)
    .sort((a, b) => b.from - a.from)[0];
}

function mustBeDecimal(text: string): Fraction {
  const decimal = decimalOf(text);
  if (!decimal) throw new Error(`${text} is not a decimal`);
  return decimal;
}

const REPLACED: readonly OraclePrice[] = [
  // Usage has nine decimals, so the cost has thirteen, and the last is 0 or 5.
  { billingDimension: 'agent_compute_runtime_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.0005' },
  { billingDimension: 'volume_storage_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.0015', per: '1.0' },
  { billingDimension: 'job_compute_runtime_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0.1', per: '3' },
  { billingDimension: 'mcp_server_image_storage_gbs', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
  // Older events are rejected.
  {
    billingDimension: 'custom_domain_active_time_hours',
    effectiveFrom: '2000-02-29T00:00:00Z',
    amount: '20',
    per: '730',
  },
];

const ADDED: readonly OraclePrice[] = [
  {
    billingDimension: 'sandbox_compute_runtime_gbs',
    effectiveFrom: '2024-02-29T12:30:00.500Z',
    amount: '0.000012345678901234',
    per: '0.7',
  },
  {
    billingDimension: 'agent_async_requests_count',
    effectiveFrom: '2025-01-01T00:00:00Z',
    amount: '0.25',
    per: '1000000',
  },
];

const OVERRIDES: readonly OraclePrice[] = [
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2020-12-28T00:00:00Z', amount: '1', per: '7' },
  { billingDimension: 'sandbox_compute_runtime_gbs', effectiveFrom: '2025-01-01T00:00:00Z', amount: '999999.5' },
  { billingDimension: 'agent_async_requests_count', effectiveFrom: '1970-01-01T00:00:00Z', amount: '0' },
];

/** A price book for {@link CATALOG} with all the special cases: ties, free usage, late first prices, changes within an hour. @param accounts with their own prices */
export function trickyBook(accounts: readonly string[]): OraclePriceBook {
  const kept = EXAMPLE_BOOK.prices.filter(
    ({ billingDimension }) => !REPLACED.some((price) => price.billingDimension === billingDimension),
  );
  return {
    version: 1,
    currency: 'USD',
    prices: [...kept, ...REPLACED, ...ADDED, ...pricesOf(ADDED_DIMENSIONS)],
    overrides: accounts.flatMap((accountId) => OVERRIDES.map((price) => ({ ...price, accountId }))),
  };
}
