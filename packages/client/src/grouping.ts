/** Answers typed by what they are grouped by. */

import type { MetricsEntry, MetricsPoint, MetricsQuery, MetricsResponse } from '@meterline/catalog';
import { type ENRICHED_BY, ENTRY_FIELD, type MetricsDimension, showsUsage } from '@meterline/catalog/plain';

/** The dimensions of a query; `account` only of one about `ALL_ACCOUNTS`. */
export type GroupBy = readonly MetricsDimension[];

/** A query whose dimensions the compiler knows, if they are written out where it is asked. */
export type MetricsQueryBy<Dimensions extends GroupBy> = Omit<MetricsQuery, 'groupBy'> & {
  readonly groupBy?: Dimensions | undefined;
};

/**
 * A group with the members that its dimensions fill: those asked for are there, those that enrich them may be, others are
 * not. Where the compiler does not know the dimensions, every member may be there.
 */
export type MetricsEntryBy<Dimensions extends GroupBy> = number extends Dimensions['length']
  ? MetricsEntry
  : Flat<
      Members<Dimensions> & {
        summary: Flat<Pick<MetricsEntry['summary'], 'cost'> & Usage<Dimensions, { usage: Amount }>>;
        timeseries: Flat<Pick<MetricsPoint, 'timestamp' | 'cost'> & Usage<Dimensions, { usage: Amount }>>[];
      }
    >;

/** A page of such groups. */
export type MetricsResponseBy<Dimensions extends GroupBy> = number extends Dimensions['length']
  ? MetricsResponse
  : Omit<MetricsResponse, 'summary' | 'data'> & {
      summary: Flat<Pick<MetricsResponse['summary'], 'totalCost'> & Usage<Dimensions, { totalUsage: Amount }>>;
      data: MetricsEntryBy<Dimensions>[];
    };

type Amount = MetricsPoint['cost'];

type Members<Dimensions extends GroupBy> = Dimensions extends readonly [
  infer First extends MetricsDimension,
  ...infer Others extends GroupBy,
]
  ? MembersOf<First> & Members<Others>
  : unknown;

/** The members of one dimension; of a union of dimensions, any of theirs. */
type MembersOf<Dimension> = Dimension extends MetricsDimension
  ? { [Field in (typeof ENTRY_FIELD)[Dimension]]: NonNullable<MetricsEntry[Field]> } & {
      [Enriched in (typeof ENRICHED_BY)[Dimension][number] as (typeof ENTRY_FIELD)[Enriched]]?:
        | MetricsEntry[(typeof ENTRY_FIELD)[Enriched]]
        | undefined;
    }
  : never;

/** `Shown` where one of the dimensions is billing_dimension. */
type Usage<Dimensions extends GroupBy, Shown> = Dimensions extends readonly [
  infer First,
  ...infer Others extends GroupBy,
]
  ? UsageOf<First, Shown> & Usage<Others, Shown>
  : unknown;

type UsageOf<Dimension, Shown> = Dimension extends 'billing_dimension' ? Shown : unknown;

/** One object type instead of an intersection, which editors show as it is written. */
type Flat<Type> = Type extends unknown ? { [Key in keyof Type]: Type[Key] } : never;

/** A member such as `data[3].workspace`, which the dimensions fill and the response does not have; undefined: nothing is missing. */
export function missingMember({ data, summary }: MetricsResponse, groupBy: GroupBy): string | undefined {
  const fields = groupBy.map((dimension) => ENTRY_FIELD[dimension]);
  const hasUsage = showsUsage(groupBy);
  if (hasUsage && summary.totalUsage === undefined) return 'summary.totalUsage';
  for (const [index, entry] of data.entries()) {
    const field = fields.find((name) => entry[name] === undefined);
    if (field !== undefined) return `data[${index}].${field}`;
    if (!hasUsage) continue;
    if (entry.summary.usage === undefined) return `data[${index}].summary.usage`;
    if (entry.timeseries.some(({ usage }) => usage === undefined)) return `data[${index}].timeseries: usage`;
  }
  return undefined;
}
