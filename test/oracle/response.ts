/** The exact text of the body that docs/api-contract.md requires, for a request and a list of events. */
import { bucketOf, bucketsOf, defaultResolution, instantOf, printInstant, type Resolution } from './calendar.js';
import { ALL_RESOURCE_TYPES, COST_DECIMALS, type Payload, USAGE_DECIMALS } from './event-rules.js';
import { printDecimal } from './exact.js';

/** An event that counts. */
export interface PricedPayload extends Payload {
  readonly account: string;
  /** USD × 10^12 */
  readonly cost: bigint;
}

const FIELDS = ['account', 'workspace', 'resourceType', 'resourceName', 'resourceUuid', 'billingDimension'] as const;
type Field = (typeof FIELDS)[number];

/** The parameters of GET …/metrics as in the URL, without the cursor. */
export interface OracleQuery extends Partial<Record<Filter, string | readonly string[]>> {
  readonly startTime: string;
  readonly endTime: string;
  readonly resolution?: Resolution;
  readonly groupBy?: string;
  readonly limit?: string;
}

/** Several values are alternatives. What is excluded is left out, whatever the others say. */
type Filter = Field | `exclude${Capitalize<Field>}` | 'withoutResourceUuid' | 'excludeWithoutResourceUuid';

/** Who asks. A member, of one of the accounts at least, may not see which workspaces there are. */
export type OracleRole = 'admin' | 'member';

/** The text of a cursor cannot be predicted; this replaces every cursor that is not empty. */
const SOME_CURSOR = '…';

/**
 * Which requested fields fill a field that was not requested (table AccountMetricsDataEntry), where all usage of the group
 * has the same value (docs/api-contract.md).
 */
const ENRICHED_BY: Readonly<Partial<Record<Field, readonly Field[]>>> = {
  workspace: ['resourceUuid', 'resourceName'],
  resourceType: ['resourceUuid', 'resourceName', 'billingDimension'],
  resourceName: ['resourceUuid'],
};

/** Groups times buckets of a page. Source: the API's reference. */
const MOST_POINTS = 20_000;

/** The text of every page, in order; at least one. Cursors are masked as by {@link maskedPages}. */
export function responsePages(
  counting: readonly PricedPayload[],
  query: OracleQuery,
  role: OracleRole = 'admin',
): string[] {
  const [start, end] = windowOf(query);
  const resolution = query.resolution ?? defaultResolution(start, end);
  const requested = requestedFields(query);
  const withUsage = requested.includes('billingDimension');
  const buckets = bucketsOf(start, end, resolution);
  const events = selected(counting, query);
  const entries = ranked(grouped(events, requested), requested).map((group) => {
    const series = buckets.map((bucket) => {
      const inBucket = group.filter(({ timestamp }) => bucketOf(timestamp, resolution) === bucket);
      return `{"timestamp":"${printInstant(bucket)}",${amounts('cost', 'usage', inBucket, withUsage)}}`;
    });
    const names = FIELDS.flatMap((field) => shown(field, group, requested, role));
    return `{${[...names, `"summary":{${amounts('cost', 'usage', group, withUsage)}}`, `"timeseries":[${series}]`]}}`;
  });

  const head = `"startTime":"${printInstant(start)}","endTime":"${printInstant(end)}","resolution":"${resolution}"`;
  const summary = `"summary":{${amounts('totalCost', 'totalUsage', events, withUsage)}}`;
  const size = Math.min(Number(query.limit ?? 100), 100, Math.floor(MOST_POINTS / buckets.length));
  return Array.from({ length: Math.max(1, Math.ceil(entries.length / size)) }, (_, page) => {
    const hasMore = (page + 1) * size < entries.length;
    const data = entries.slice(page * size, (page + 1) * size);
    return `{${head},${summary},"data":[${data}],"meta":{"hasMore":${hasMore},"nextCursor":"${hasMore ? SOME_CURSOR : ''}"}}`;
  });
}

const CURSOR = /(?<="nextCursor":")[^"]+(?="\}\}$)/;
/** Paging that never ends must fail, not hang. */
const MAX_PAGES = 1_000;

/** The service's bodies of all pages, their cursors masked by the oracle's placeholder. @param read the cursor of the first is empty */
export async function maskedPages(read: (cursor: string) => Promise<string>): Promise<string[]> {
  const pages: string[] = [];
  let cursor: string | undefined = '';
  while (cursor !== undefined && pages.length < MAX_PAGES) {
    const page = await read(cursor);
    cursor = CURSOR.exec(page)?.[0];
    pages.push(page.replace(CURSOR, SOME_CURSOR));
  }
  return pages;
}

/** The body of GET …/metrics/enums/resource-types. */
export function responseResourceTypes(counting: readonly PricedPayload[], query: OracleQuery): string {
  const used = selected(counting, query);
  return JSON.stringify({
    values: ALL_RESOURCE_TYPES.filter((type) => used.some((event) => event.resourceType === type)),
  });
}

function windowOf({ startTime, endTime }: OracleQuery): [start: number, end: number] {
  const [start, end] = [instantOf(startTime), instantOf(endTime)];
  if (start === undefined || end === undefined || start >= end) throw new Error(`no window: ${startTime} ${endTime}`);
  return [start, end];
}

function requestedFields({ groupBy = '' }: OracleQuery): Field[] {
  const names = groupBy.split(',');
  return FIELDS.filter((field) => names.includes(field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)));
}

function selected(events: readonly PricedPayload[], query: OracleQuery): PricedPayload[] {
  const [start, end] = windowOf(query);
  const filters = FIELDS.map((field) => ({
    field,
    wanted: valuesOf(query, field, field, 'withoutResourceUuid'),
    unwanted: valuesOf(query, field, excluding(field), 'excludeWithoutResourceUuid'),
  }));
  return events.filter(
    (event) =>
      event.timestamp >= start &&
      event.timestamp < end &&
      filters.every(({ field, wanted, unwanted }) => {
        const value = event[field];
        return (wanted.length === 0 || wanted.includes(value)) && !unwanted.includes(value);
      }),
  );
}

function excluding<Name extends Field>(field: Name): `exclude${Capitalize<Name>}` {
  return `exclude${field.charAt(0).toUpperCase()}${field.slice(1)}` as `exclude${Capitalize<Name>}`;
}

/** @param without the parameter that stands for the value of what has no UUID */
function valuesOf(query: OracleQuery, field: Field, named: Filter, without: Filter): readonly string[] {
  const values = [query[named] ?? []].flat();
  return field === 'resourceUuid' && query[without] === 'true' ? [...values, ''] : values;
}

/** Without groupBy there is exactly one group, even if no event counts. */
function grouped(events: readonly PricedPayload[], requested: readonly Field[]): PricedPayload[][] {
  if (requested.length === 0) return [[...events]];
  const groups = new Map<string, PricedPayload[]>();
  for (const event of events) {
    const key = JSON.stringify(requested.map((field) => event[field]));
    const group = groups.get(key);
    if (group) group.push(event);
    else groups.set(key, [event]);
  }
  return [...groups.values()];
}

/** Most expensive first; groups of equal cost are ordered by their values, field by field, in byte order. */
function ranked(groups: readonly PricedPayload[][], requested: readonly Field[]): PricedPayload[][] {
  return [...groups].sort((a, b) => {
    const difference = sum(b, 'cost') - sum(a, 'cost');
    if (difference !== 0n) return difference > 0n ? 1 : -1;
    const [one, other] = [a, b].map(([event]) => requested.map((field) => Buffer.from(event?.[field] ?? '')));
    return one?.map((bytes, n) => bytes.compare(other?.[n] ?? bytes)).find((order) => order !== 0) ?? 0;
  });
}

function shown(field: Field, group: readonly PricedPayload[], requested: readonly Field[], role: OracleRole): string[] {
  const isRequested = requested.includes(field);
  const isEnriched = ENRICHED_BY[field]?.some((other) => requested.includes(other));
  if (!isRequested && (!isEnriched || (field === 'workspace' && role === 'member'))) return [];
  const values = new Set(group.map((event) => event[field]));
  return values.size === 1 ? [`"${field}":${JSON.stringify([...values][0])}`] : [];
}

function amounts(costName: string, usageName: string, events: readonly PricedPayload[], withUsage: boolean): string {
  const cost = `"${costName}":${printDecimal(sum(events, 'cost'), COST_DECIMALS)}`;
  return withUsage ? `${cost},"${usageName}":${printDecimal(sum(events, 'usage'), USAGE_DECIMALS)}` : cost;
}

function sum(events: readonly PricedPayload[], amount: 'cost' | 'usage'): bigint {
  return events.reduce((total, event) => total + event[amount], 0n);
}
