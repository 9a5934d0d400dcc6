/**
 * Writes the response of GET …/metrics as JSON. Each group has a series over the whole window. Source:
 * docs/api-contract.md, "Windows and buckets" and "Groups and filters".
 *
 * Amounts are exact decimals, but JSON.stringify can write numbers only as doubles. `JSON.rawJSON` (Node 22) can write exact numbers, but
 * it cannot insert a preformatted series, and is eight times slower (docs/decisions/0002).
 */
import {
  bucketAxis,
  type DecimalText,
  ENTRY_FIELD,
  formatTimestamp,
  METRICS_DIMENSIONS,
  showsUsage,
} from '@meterline/catalog';
import type { MetricsGroup } from '@meterline/warehouse';
import type { MetricsPage } from './pages.js';
import type { MetricsRequest } from './request.js';

export function metricsResponse(
  request: MetricsRequest,
  { groups, totals }: MetricsPage,
  nextCursor: string,
): ExactJson {
  const { window, resolution, groupBy } = request;
  const withUsage = showsUsage(groupBy);
  const axis = shapeAxis(request, withUsage);
  return {
    startTime: formatTimestamp(window.startTime),
    endTime: formatTimestamp(window.endTime),
    resolution,
    summary: {
      totalCost: exactNumber(totals.cost),
      totalUsage: withUsage ? exactNumber(totals.usage) : undefined,
    },
    data: groups.map((group) => shapeEntry(group, axis, withUsage)),
    meta: { hasMore: nextCursor !== '', nextCursor },
  };
}

function shapeEntry(group: MetricsGroup, axis: Axis, withUsage: boolean): ExactJson {
  return {
    ...Object.fromEntries(METRICS_DIMENSIONS.map((dimension) => [ENTRY_FIELD[dimension], group.values[dimension]])),
    summary: {
      cost: exactNumber(group.cost),
      usage: withUsage ? exactNumber(group.usage) : undefined,
    },
    timeseries: shapeSeries(group, axis, withUsage),
  };
}

interface Axis {
  /** For each bucket, the first part of its JSON, up to the cost: `{"timestamp":"…","cost":`. */
  readonly starts: readonly string[];
  /** For each bucket, its whole JSON if the bucket has no usage. */
  readonly zeros: readonly string[];
}

function shapeAxis({ window, resolution }: MetricsRequest, withUsage: boolean): Axis {
  const starts = bucketAxis(window, resolution).map((bucket) => `{"timestamp":"${formatTimestamp(bucket)}","cost":`);
  return { starts, zeros: starts.map((start) => (withUsage ? `${start}0,"usage":0}` : `${start}0}`)) };
}

/** Formats a series as JSON text. Series make up most of a response, and building an object for each bucket took most of the time. */
function shapeSeries({ series }: MetricsGroup, { starts, zeros }: Axis, withUsage: boolean): RawJson {
  const { buckets, costs, usages } = series;
  const entries = zeros.slice();
  buckets.forEach((bucket, index) => {
    const usage = withUsage ? `,"usage":${usages[index]}` : '';
    entries[bucket] = `${starts[bucket]}${costs[index]}${usage}}`;
  });
  return new RawJson(`[${entries.join(',')}]`);
}

export class RawJson {
  constructor(readonly text: string) {}
}

export type ExactJson =
  | string
  | number
  | boolean
  | RawJson
  | readonly ExactJson[]
  | { readonly [member: string]: ExactJson | undefined };

export function exactNumber(amount: DecimalText): RawJson {
  return new RawJson(amount);
}

/** Omits undefined members, as JSON.stringify does. */
export function writeJson(value: ExactJson): string {
  if (typeof value !== 'object') return JSON.stringify(value);
  if (value instanceof RawJson) return value.text;
  // Concatenate with `+`, which does not copy the strings. `join` would copy the text of nested values again at each level.
  let text = '';
  if (isList(value)) {
    for (const element of value) text += `${text === '' ? '' : ','}${writeJson(element)}`;
    return `[${text}]`;
  }
  for (const [name, member] of Object.entries(value)) {
    if (member !== undefined) text += `${text === '' ? '' : ','}${JSON.stringify(name)}:${writeJson(member)}`;
  }
  return `{${text}}`;
}

/** Array.isArray alone does not narrow the type of a readonly array. */
function isList(value: object): value is readonly ExactJson[] {
  return Array.isArray(value);
}
