/**
 * Reads the figures that alerts compare with their thresholds: the cost or usage of a period, or the forecast of the month. The metrics API
 * uses the same statement, so alerts and metrics agree.
 */
import {
  bucketAxis,
  bucketStart,
  type DecimalText,
  ENTRY_FIELD,
  type EpochMs,
  GROUP_BY_DIMENSIONS,
  MS_PER_DAY,
  monthFigures,
  monthWindow,
  type Window,
  ZERO,
} from '@meterline/catalog';
import type { Alert, Fired } from '@meterline/service/alerts';
import {
  type DimensionValues,
  type MetricsGroup,
  type ReadRollupState,
  readMetrics,
  type Warehouse,
} from '@meterline/warehouse';

/** The part of an alert's definition that decides which figures are read. */
export interface Measured extends Pick<Alert, 'measure' | 'filters'> {
  readonly period: Window;
  readonly isForecast: boolean;
}

/** The cost or usage of an account in a period. `judged` is the amount to compare with the thresholds: `value`, or the forecast. */
export interface Figure extends Pick<Fired, 'forecast'> {
  readonly value: DecimalText;
  readonly judged: DecimalText | undefined;
}

/** @returns the figures of the accounts that have usage */
export async function readFigures(
  warehouse: Warehouse,
  readRollupState: ReadRollupState,
  { accounts, period, isForecast, measure, filters }: Measured & { readonly accounts: readonly string[] },
  now: EpochMs,
): Promise<ReadonlyMap<string | undefined, Figure>> {
  const window = isForecast ? { ...monthWindow(now), endTime: bucketStart(now, 'daily') + MS_PER_DAY } : period;
  const { groups } = await readMetrics(warehouse, {
    accounts,
    window,
    filters: dimensionsOf(filters),
    groupBy: ['account'],
    // Any resolution except hourly can use daily rollup rows. The current and the previous month are never dropped, so no usage is missing.
    resolution: isForecast ? 'daily' : 'monthly',
    rollups: await readRollupState({ accounts, warehouse }, window),
    limit: accounts.length,
  });
  const figureOf = (group: MetricsGroup): Figure => {
    if (isForecast) return forecastFigure(group, measure, window, now);
    return { value: group[measure], judged: group[measure] };
  };
  return new Map(groups.map((group) => [group.values.account, figureOf(group)]));
}

function forecastFigure({ series }: MetricsGroup, measure: Alert['measure'], window: Window, now: EpochMs): Figure {
  const amounts = measure === 'cost' ? series.costs : series.usages;
  const used = new Map(series.buckets.map((bucket, index) => [bucket, amounts[index]]));
  const days = bucketAxis(window, 'daily');
  const { toDate, forecast } = monthFigures({ days, costs: days.map((_, bucket) => used.get(bucket) ?? ZERO) }, now);
  return { value: toDate, judged: forecast, forecast };
}

function dimensionsOf(filters: Alert['filters']): DimensionValues {
  const entries = GROUP_BY_DIMENSIONS.map((dimension) => [dimension, filters[ENTRY_FIELD[dimension]]] as const);
  return Object.fromEntries(entries.filter(([, values]) => values !== undefined));
}
