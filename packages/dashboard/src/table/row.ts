import { type DecimalText, DIMENSIONS, type GroupByDimension, type Unit, ZERO } from '@meterline/catalog';
import type { MetricsEntry } from '@meterline/client';
import { type GroupValues, groupKey, groupLabels } from '../breakdown/group.js';

/** A group in the table. */
export interface Row {
  readonly key: string;
  readonly labels: readonly string[];
  readonly values: GroupValues;
  readonly cost: DecimalText;
  readonly usage: DecimalText | undefined;
  readonly unit: Unit | undefined;
  /** Undefined: not compared. */
  readonly previousCost: DecimalText | undefined;
}

/** What each group cost in the period before; undefined when it is not known yet, or not asked for. */
export type PreviousCosts = ReadonlyMap<string, DecimalText> | undefined;

export function rowOf(entry: MetricsEntry, groupBy: readonly GroupByDimension[], previous: PreviousCosts): Row {
  const key = groupKey(entry, groupBy);
  return {
    key,
    labels: groupBy.length === 0 ? ['Everything'] : groupLabels(entry, groupBy),
    values: entry,
    cost: entry.summary.cost,
    usage: entry.summary.usage,
    unit: entry.billingDimension && DIMENSIONS[entry.billingDimension].unit,
    previousCost: previous && (previous.get(key) ?? ZERO),
  };
}
