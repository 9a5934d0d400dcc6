/** Derives the type of a metrics response from the dimensions in the `groupBy` of its query. */
import type { MetricsEntry, MetricsPoint, MetricsQuery, MetricsResponse } from '@meterline/catalog';
import { type ENRICHED_BY, ENTRY_FIELD, type MetricsDimension, showsUsage } from '@meterline/catalog/plain';

/** Dimensions to group by. Only queries of all accounts can group by `account`. */
export type GroupBy = readonly MetricsDimension[];

/** A metrics query. If its `groupBy` is a literal array, the compiler infers the dimensions. */
export type MetricsQueryBy<Dimensions extends GroupBy> = Omit<MetricsQuery, 'groupBy'> & {
  readonly groupBy?: Dimensions | undefined;
};

/**
 * A group with one field per dimension. Fields of requested dimensions are required. Fields of dimensions that the API adds are optional,
 * such as `resourceType` if `resource_name` is requested. All other fields are absent. If the compiler cannot infer the dimensions, every
 * field is optional.
 */
export type MetricsEntryBy<Dimensions extends GroupBy> = number extends Dimensions['length']
  ? MetricsEntry
  : Flat<
      Members<Dimensions> & {
        summary: Flat<Pick<MetricsEntry['summary'], 'cost'> & Usage<Dimensions, { usage: Amount }>>;
        timeseries: Flat<Pick<MetricsPoint, 'timestamp' | 'cost'> & Usage<Dimensions, { usage: Amount }>>[];
      }
    >;

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

/** The fields of one dimension, or for a union of dimensions, the union of their fields (a distributive conditional type). */
type MembersOf<Dimension> = Dimension extends MetricsDimension
  ? { [Field in (typeof ENTRY_FIELD)[Dimension]]: NonNullable<MetricsEntry[Field]> } & {
      [Enriched in (typeof ENRICHED_BY)[Dimension][number] as (typeof ENTRY_FIELD)[Enriched]]?:
        | MetricsEntry[(typeof ENTRY_FIELD)[Enriched]]
        | undefined;
    }
  : never;

/** Resolves to `Shown` if the dimensions include billing_dimension. Only then does each group have usage in a single unit. */
type Usage<Dimensions extends GroupBy, Shown> = Dimensions extends readonly [
  infer First,
  ...infer Others extends GroupBy,
]
  ? UsageOf<First, Shown> & Usage<Others, Shown>
  : unknown;

type UsageOf<Dimension, Shown> = Dimension extends 'billing_dimension' ? Shown : unknown;

/** Merges an intersection into one object type, because editors display it more clearly. */
type Flat<Type> = Type extends unknown ? { [Key in keyof Type]: Type[Key] } : never;

/** Returns the path of the first field that `groupBy` requires but the response lacks, such as `data[3].workspace`. */
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
