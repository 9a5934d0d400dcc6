/** The flags of a query, as people say it, and the query that they make: its window, its filters, its groups. */
import {
  BILLING_DIMENSIONS,
  type BillingDimension,
  COMPARISONS,
  type Comparison,
  canonicalGroupBy,
  comparedWindow,
  defaultResolution,
  type EpochMs,
  EXCLUDING_PARAMETER,
  formatTimestamp,
  MAX_GROUP_BY_DIMENSIONS,
  MAX_METRICS_PAGE,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  type ResourceType,
  START_OF_CALENDAR,
  upTo,
  type Window,
  wholeMonths,
} from '@meterline/catalog/plain';
import type { MetricsQuery, WindowQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { usageError } from '../failure.js';
import { nameOf, wholeNumber } from '../flags.js';
import { lastSpan, monthOf, SPANS, type Span, spanOf, timeOf } from '../times.js';

export interface WindowFlags {
  readonly since?: Span;
  readonly month?: Window;
  readonly from?: EpochMs;
  readonly to?: EpochMs;
}

const DEFAULT_SPAN: Span = { count: 30, unit: 'daily' };

export function withWindow(command: Command): Command {
  return command
    .addOption(
      new Option('--month <month>', 'a calendar month, such as 2026-11; one that is not over: up to now')
        .argParser(monthOf)
        .conflicts(['since', 'from', 'to']),
    )
    .addOption(new Option('--since <span>', `the last ${SPANS} (default: 30d)`).argParser(spanOf).conflicts('from'))
    .option('--from <time>', 'from this time on: 2026-10-01, or 2026-10-01T12:00:00Z; always UTC', timeOf)
    .option('--to <time>', 'up to, not including, this time (default: now)', timeOf);
}

/** A window as it is meant, and the part of it that is asked for. */
export interface AskedWindow {
  /** The whole period: of the present month or day, also what is still to come. */
  readonly whole: Window;
  /** The calendar months that it is meant as; undefined for any other window. */
  readonly months: number | undefined;
  readonly sent: WindowQuery;
  /** Of the whole period, so that a month has days from its first day on. */
  readonly resolution: Resolution;
  /** The present, to the second: milliseconds of the clock would only make the answer harder to read. */
  readonly asOf: EpochMs;
}

/** @throws CommandError when the flags contradict each other */
export function windowOf(flags: WindowFlags, now: Date): AskedWindow {
  const asOf = Math.floor(now.getTime() / 1_000) * 1_000;
  const { whole, isNamed } = wholeWindow(flags, asOf);
  if (whole.startTime >= whole.endTime) {
    throw usageError(`--from must be before ${flags.to === undefined ? 'now' : '--to'}`);
  }
  if (whole.startTime < START_OF_CALENDAR) throw usageError('the window begins before the year 0001');
  return {
    whole,
    months: flags.since === undefined ? wholeMonths(whole) : undefined,
    sent: timesOf(isNamed ? whole : upTo(whole, asOf)),
    resolution: defaultResolution(whole),
    asOf,
  };
}

/** @returns isNamed: both ends were given, or one and now; what is asked for is just that */
function wholeWindow({ since, month, from, to }: WindowFlags, asOf: EpochMs): { whole: Window; isNamed: boolean } {
  if (month) return { whole: month, isNamed: false };
  if (from !== undefined) return { whole: { startTime: from, endTime: to ?? asOf }, isNamed: true };
  const span = since ?? DEFAULT_SPAN;
  if (span.unit === 'exact') return { whole: lastSpan(span, to ?? asOf), isNamed: true };
  // Up to a time that was named, the last day is the one that ends there or holds it.
  if (to === undefined) return { whole: lastSpan(span, asOf), isNamed: false };
  return { whole: { startTime: lastSpan(span, to - 1).startTime, endTime: to }, isNamed: true };
}

function timesOf({ startTime, endTime }: Window) {
  return { startTime: formatTimestamp(startTime), endTime: formatTimestamp(endTime) };
}

interface Filters {
  readonly account?: readonly string[];
  readonly workspace?: readonly string[];
  readonly resourceType?: readonly ResourceType[];
  readonly resourceName?: readonly string[];
  readonly resourceUuid?: readonly string[];
  readonly withoutResourceUuid?: boolean;
  readonly billingDimension?: readonly BillingDimension[];
  readonly excludeAccount?: readonly string[];
  readonly excludeWorkspace?: readonly string[];
  readonly excludeResourceType?: readonly ResourceType[];
  readonly excludeResourceName?: readonly string[];
  readonly excludeResourceUuid?: readonly string[];
  readonly excludeWithoutResourceUuid?: boolean;
  readonly excludeBillingDimension?: readonly BillingDimension[];
}

export interface FilterFlags {
  readonly filter?: Filters;
}

const NAMES = [...Object.keys(EXCLUDING_PARAMETER), 'withoutResourceUuid'];
const EXCLUDING: ReadonlyMap<string, string> = new Map([
  ...Object.entries(EXCLUDING_PARAMETER),
  ['withoutResourceUuid', 'excludeWithoutResourceUuid'],
]);
const resourceTypeOf = oneOf(RESOURCE_TYPES);
const billingDimensionOf = oneOf(BILLING_DIMENSIONS);

/** A flag that adds to the filters: `--filter` with `name=value`, or one with a name of its own and the value alone. */
class FilterOption extends Option {
  constructor(flags: string, description: string, name?: keyof Filters, choices: readonly string[] = []) {
    super(flags, description);
    if (choices.length > 0) this.choices(choices);
    this.argParser((text, before?: Filters) => filterOf(name === undefined ? text : `${name}=${text}`, before));
  }

  override attributeName(): string {
    return 'filter';
  }
}

/** Flags that may be given several times, for one value or another; `--filter` has the names of the API's parameters. */
export function withFilters(command: Command): Command {
  return command
    .addOption(
      new FilterOption(
        '--filter <name=value>',
        'a filter as in the API, such as resourceType=agent; != leaves out; may be repeated',
        undefined,
        [...NAMES.map((name) => `${name}=`), ...NAMES.map((name) => `${name}!=`)],
      ),
    )
    .addOption(new FilterOption('--workspace <name>', 'only this workspace; admins only', 'workspace'))
    .addOption(new FilterOption('--resource-type <type>', 'only this type', 'resourceType', RESOURCE_TYPES))
    .addOption(new FilterOption('--resource-name <name>', 'only this resource', 'resourceName'))
    .addOption(new FilterOption('--resource-uuid <uuid>', 'only this instance', 'resourceUuid'))
    .addOption(
      new FilterOption('--without-resource-uuid', 'only what has no UUID', 'withoutResourceUuid').preset('true'),
    )
    .addOption(
      new FilterOption(
        '--billing-dimension <dimension>',
        'only this dimension',
        'billingDimension',
        BILLING_DIMENSIONS,
      ),
    );
}

/**
 * `resourceType=agent` or `resourceType!=agent`, added to those before; also by the API's name, `excludeResourceType=agent`.
 * The value may hold an equals sign.
 * @throws InvalidArgumentError
 */
function filterOf(text: string, before: Filters = {}): Filters {
  const [, named = '', operator = '', value = ''] = /^(\w+)(!?=)(.*)$/s.exec(text) ?? [];
  const name = operator === '!=' ? EXCLUDING.get(named) : named;
  switch (name) {
    case 'account':
    case 'excludeAccount':
    case 'workspace':
    case 'resourceName':
    case 'resourceUuid':
    case 'excludeWorkspace':
    case 'excludeResourceName':
    case 'excludeResourceUuid':
      return { ...before, [name]: [...(before[name] ?? []), nameOf(value)] };
    case 'resourceType':
    case 'excludeResourceType':
      return { ...before, [name]: [...(before[name] ?? []), resourceTypeOf(value)] };
    case 'billingDimension':
    case 'excludeBillingDimension':
      return { ...before, [name]: [...(before[name] ?? []), billingDimensionOf(value)] };
    case 'withoutResourceUuid':
    case 'excludeWithoutResourceUuid':
      return { ...before, [name]: oneOf(['true', 'false'])(value) === 'true' };
    default:
      throw new InvalidArgumentError(
        `It must be name=value or name!=value, such as resourceType=agent, with a name of ${NAMES.join(', ')}.`,
      );
  }
}

/** @throws InvalidArgumentError */
function oneOf<const Value extends string>(values: readonly Value[]): (text: string) => Value {
  return (text) => {
    const value = values.find((each) => each === text);
    if (value === undefined) throw new InvalidArgumentError(`Allowed choices are ${values.join(', ')}.`);
    return value;
  };
}

export interface QueryFlags extends WindowFlags, FilterFlags {
  readonly allAccounts?: boolean;
  readonly resolution?: Resolution;
  readonly groupBy?: readonly MetricsDimension[];
  /** True: what fits the window. */
  readonly compare?: Comparison | true;
  readonly limit?: number;
  readonly cursor?: string;
}

export function withQuery(command: Command): Command {
  const grouped = withWindow(command)
    .addOption(
      new Option('--resolution <resolution>', 'length of a bucket (default: by the window)').choices(RESOLUTIONS),
    )
    .addOption(
      new Option('--group-by <dimensions>', `up to ${MAX_GROUP_BY_DIMENSIONS}, with commas between, or repeated`)
        .choices(METRICS_DIMENSIONS)
        .argParser(groupByOf),
    )
    .addOption(
      new Option(
        '--compare [with]',
        'beside the time before: whole weeks earlier (period) or months by date; left out: months where the window is months',
      )
        .choices(COMPARISONS)
        .conflicts('cursor'),
    );
  return withFilters(grouped)
    .addOption(
      new Option(
        '--all-accounts',
        'of every account of the key; then also: --group-by account, --filter account=<name>',
      ).conflicts('account'),
    )
    .option('--limit <n>', `groups on a page, at most ${MAX_METRICS_PAGE}`, (text) =>
      wholeNumber(text, 1, MAX_METRICS_PAGE),
    )
    .option('--cursor <cursor>', 'the page of this cursor, which is meta.nextCursor of another answer');
}

export interface Query {
  /** What the API is sent. */
  readonly sent: MetricsQuery;
  readonly groupBy: readonly MetricsDimension[];
  /** The same about the time before, which is such as `4 weeks earlier`; undefined: not compared. */
  readonly compared: { readonly sent: MetricsQuery; readonly distance: string } | undefined;
}

/** @throws CommandError when the flags contradict each other */
export function queryOf(flags: QueryFlags, now: Date): Query {
  const { groupBy = [], filter, limit, cursor, compare } = flags;
  if (!flags.allAccounts && (groupBy.includes('account') || filter?.account || filter?.excludeAccount)) {
    throw usageError('account is a dimension and a filter with --all-accounts alone');
  }
  const { sent: times, resolution: byWindow, whole, months, asOf } = windowOf(flags, now);
  const resolution = flags.resolution ?? byWindow;
  const common = { ...filter, resolution, groupBy, limit };
  const sent = { ...common, ...times, cursor };
  if (compare === undefined) return { sent, groupBy, compared: undefined };
  const comparison = compare === true ? (months === undefined ? 'period' : 'months') : compare;
  const before = comparedWindow(comparison, { window: whole, months, resolution, asOf });
  if (!before) throw usageError('--compare: the window lies in the future, or the time before it begins before 1970');
  return { sent, groupBy, compared: { sent: { ...common, ...timesOf(before.window) }, distance: before.distance } };
}

/** Added to those before. @throws InvalidArgumentError */
function groupByOf(text: string, before: readonly MetricsDimension[] = []): MetricsDimension[] {
  const names = [...before, ...text.split(',').map((name) => name.trim())];
  const known = names.flatMap((name) => METRICS_DIMENSIONS.filter((dimension) => dimension === name));
  const areDifferent = new Set(names).size === names.length;
  if (known.length === names.length && areDifferent && names.length <= MAX_GROUP_BY_DIMENSIONS) {
    return canonicalGroupBy(known);
  }
  throw new InvalidArgumentError(
    `It must be up to ${MAX_GROUP_BY_DIMENSIONS} different ones of ${METRICS_DIMENSIONS.join(', ')}.`,
  );
}
