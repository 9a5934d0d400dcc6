/**
 * The shape of an answer: which fields are there, and a series over the whole window.
 * Source: the API specification, section "Billing API", AccountMetricsResponse and AccountMetricsDataEntry.
 */
import { bucketAxis, ENTRY_FIELD, formatTimestamp, GROUP_BY_DIMENSIONS, showsUsage } from '@meterline/catalog';
import type { MetricsGroup } from '@meterline/warehouse';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';
import { type ExactJson, ExactNumber, WrittenJson } from './json.js';
import type { MetricsPage } from './paged-metrics.js';

/** @param nextCursor empty on the last page */
export function shapeAnswer(request: MetricsRequest, { groups, totals }: MetricsPage, nextCursor: string): ExactJson {
  const { window, resolution, groupBy } = request;
  const withUsage = showsUsage(groupBy);
  const axis = shapeAxis(request, withUsage);
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

function shapeEntry(group: MetricsGroup, axis: Axis, withUsage: boolean): ExactJson {
  return {
    ...Object.fromEntries(GROUP_BY_DIMENSIONS.map((dimension) => [ENTRY_FIELD[dimension], group.values[dimension]])),
    summary: {
      cost: new ExactNumber(group.cost),
      usage: withUsage ? new ExactNumber(group.usage) : undefined,
    },
    timeseries: shapeSeries(group, axis, withUsage),
  };
}

/** The same for every group of an answer. */
interface Axis {
  /** How the entry of each bucket begins, up to its cost. */
  readonly starts: readonly string[];
  /** The entry of each bucket in which nothing was used. */
  readonly zeros: readonly string[];
}

function shapeAxis({ window, resolution }: MetricsRequest, withUsage: boolean): Axis {
  const starts = bucketAxis(window, resolution).map((bucket) => `{"timestamp":"${formatTimestamp(bucket)}","cost":`);
  return { starts, zeros: starts.map((start) => (withUsage ? `${start}0,"usage":0}` : `${start}0}`)) };
}

/** Written as text at once: most of an answer is series, and objects for their entries took most of the time. */
function shapeSeries({ series }: MetricsGroup, { starts, zeros }: Axis, withUsage: boolean): WrittenJson {
  const { buckets, costs, usages } = series;
  const entries = zeros.slice();
  buckets.forEach((bucket, index) => {
    const usage = withUsage ? `,"usage":${usages[index]}` : '';
    entries[bucket] = `${starts[bucket]}${costs[index]}${usage}}`;
  });
  return new WrittenJson(`[${entries.join(',')}]`);
}
