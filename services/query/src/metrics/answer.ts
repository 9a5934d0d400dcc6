/**
 * The shape of an answer: which fields are there, and a series over the whole window.
 * Source: the API specification, section "Billing API", AccountMetricsResponse and AccountMetricsDataEntry.
 */
import {
  bucketAxis,
  type DecimalText,
  ENTRY_FIELD,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  isDecimalText,
  showsUsage,
} from '@meterline/catalog';
import type { MetricsGroup, SparseSeries } from '@meterline/warehouse';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { type ExactJson, ExactNumber } from './json.js';
import type { MetricsPage } from './paged-metrics.js';

/** @param nextCursor empty on the last page */
export function shapeAnswer(request: MetricsRequest, { groups, totals }: MetricsPage, nextCursor: string): ExactJson {
  const { window, resolution, groupBy } = request;
  const withUsage = showsUsage(groupBy);
  const axis = bucketAxis(window, resolution).map(formatTimestamp);
  return {
    startTime: formatTimestamp(window.startTime),
    endTime: formatTimestamp(window.endTime),
    resolution,
    summary: {
      totalCost: new ExactNumber(totals.cost),
      totalUsage: withUsage ? new ExactNumber(totals.usage) : undefined,
    },
    data: groups.map((group) => shapeEntry(group, axis, withUsage)),
    meta: { hasMore: nextCursor !== '', nextCursor },
  };
}

function shapeEntry(group: MetricsGroup, axis: readonly string[], withUsage: boolean): ExactJson {
  return {
    ...Object.fromEntries(GROUP_BY_DIMENSIONS.map((dimension) => [ENTRY_FIELD[dimension], group.values[dimension]])),
    summary: {
      cost: new ExactNumber(group.cost),
      usage: withUsage ? new ExactNumber(group.usage) : undefined,
    },
    timeseries: shapeSeries(group, axis, withUsage),
  };
}

function shapeSeries(group: MetricsGroup, axis: readonly string[], withUsage: boolean): ExactJson {
  const cost = byBucket(group.costSeries);
  const usage = byBucket(group.usageSeries);
  return axis.map((timestamp, bucket) => ({
    timestamp,
    cost: cost.get(bucket) ?? ZERO,
    usage: withUsage ? (usage.get(bucket) ?? ZERO) : undefined,
  }));
}

function byBucket(series: SparseSeries): ReadonlyMap<number, ExactNumber> {
  return new Map(series.map(([bucket, amount]) => [bucket, new ExactNumber(amount)]));
}

const ZERO = new ExactNumber(decimal('0'));

function decimal(text: string): DecimalText {
  if (!isDecimalText(text)) throw new TypeError(`${text} is not a decimal`);
  return text;
}
