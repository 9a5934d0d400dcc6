/**
 * The shape of an answer: which fields are there, and a series over the whole window.
 * Source: the API specification, section "Billing API", AccountMetricsResponse and AccountMetricsDataEntry.
 */
import { bucketAxis, ENTRY_FIELD, formatTimestamp, GROUP_BY_DIMENSIONS, showsUsage } from '@meterline/catalog';
import type { MetricsGroup, SparseSeries } from '@meterline/warehouse';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { type ExactJson, ExactNumber, WrittenJson } from './json.js';
import type { MetricsPage } from './paged-metrics.js';

/** @param nextCursor empty on the last page */
export function shapeAnswer(request: MetricsRequest, { groups, totals }: MetricsPage, nextCursor: string): ExactJson {
  const { window, resolution, groupBy } = request;
  const withUsage = showsUsage(groupBy);
  const axis = bucketAxis(window, resolution).map((bucket) => `{"timestamp":"${formatTimestamp(bucket)}","cost":`);
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

/**
 * Written as text at once: most of an answer is series, and objects for their entries took most of the time.
 * @param axis how the entry of each bucket begins
 */
function shapeSeries(group: MetricsGroup, axis: readonly string[], withUsage: boolean): WrittenJson {
  const costs = allBuckets(group.costSeries, axis.length);
  if (!withUsage) return new WrittenJson(`[${axis.map((entry, bucket) => `${entry}${costs[bucket]}}`).join(',')}]`);
  const usages = allBuckets(group.usageSeries, axis.length);
  const entries = axis.map((entry, bucket) => `${entry}${costs[bucket]},"usage":${usages[bucket]}}`);
  return new WrittenJson(`[${entries.join(',')}]`);
}

function allBuckets({ buckets, amounts }: SparseSeries, length: number): string[] {
  const all = new Array<string>(length).fill('0');
  for (const [index, bucket] of buckets.entries()) all[bucket] = amounts[index] ?? '0';
  return all;
}
