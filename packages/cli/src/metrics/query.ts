/** The flags of a query, as people say it, and the query that they make: its window, its filters, its groups. */
import {
  ACCOUNT_FILTERS,
  ACCOUNTS_METRICS_PARAMETERS,
  BILLING_DIMENSIONS,
  COMPARISONS,
  type Comparison,
  comparedWindow,
  defaultResolution,
  type EpochMs,
  EXCLUDING_PARAMETER,
  FILTER_PARAMETERS,
  formatTimestamp,
  MAX_GROUP_BY_DIMENSIONS,
  MAX_METRICS_PAGE,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  RESOLUTIONS,
  RESOURCE_TYPES,
  type Resolution,
  START_OF_CALENDAR,
  timesOf,
  upTo,
  type Window,
  wholeMonths,
} from '@meterline/catalog';
import type { EventsQuery, MetricsQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { usageError } from '../failure.js';
import { lastSpan, monthOf, parsedBy, SPANS, type Span, spanOf, timeOf, wholeNumber } from '../flags.js';
import { RepeatableOption } from '../repeated.js';

export interface WindowFlags {
  readonly since?: Span | undefined;
  readonly month?: Window | undefined;
  readonly from?: EpochMs | undefined;
  readonly to?: EpochMs | undefined;
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
export interface RequestedWindow {
  /** The whole period: of the present month or day, also what is still to come. */
  readonly whole: Window;
  /** The calendar months that it is meant as; undefined for any other window. */
  readonly months: number | undefined;
  readonly sent: ReturnType<typeof timesOf>;
  /** The resolution for the whole period, so that a month has days from its first day on. */
  readonly resolution: Resolution;
  /** The present, to the second: milliseconds of the clock would only make the response harder to read. */
  readonly asOf: EpochMs;
}

/** @throws CommandError when the flags contradict each other */
export function windowOf(flags: WindowFlags, now: Date): RequestedWindow {
  const second = Math.floor(now.getTime() / 1_000) * 1_000;
  const start = flags.month?.startTime ?? flags.from ?? 0;
  // A window that starts in this second would end at its own start.
  const asOf = start >= second && start <= now.getTime() ? second + 1_000 : second;
  const { whole, isNamed } = wholeWindow(flags, asOf);
  if (whole.startTime >= whole.endTime) {
    throw usageError(`--from must be before ${flags.to === undefined ? 'now' : '--to'}`);
  }
  if (whole.startTime < START_OF_CALENDAR) throw usageError('the window begins before the year 0001');
  return {
    whole,
    // The thirty days that are meant by default may happen to be a month.
    months: flags.month || flags.from !== undefined ? wholeMonths(whole) : undefined,
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

/** @throws CommandError for a cursor with a window that ends now, and so is another a second later */
function requireWindowOf({ cursor, to }: EventsFlags, { sent, asOf }: RequestedWindow): void {
  if (cursor === undefined || to !== undefined || sent.endTime !== formatTimestamp(asOf)) return;
  throw usageError('--cursor needs the window of its response: --from its startTime and --to its endTime');
}

const FILTERS = { ...FILTER_PARAMETERS, ...ACCOUNT_FILTERS };
type Value<Name extends keyof typeof FILTERS> = z.output<(typeof FILTERS)[Name]>;
type Filters = {
  readonly [Name in keyof typeof FILTERS]?: Value<Name> extends boolean ? boolean : readonly Value<Name>[];
};

export interface FilterFlags {
  readonly filter?: Filters;
}

const EXCLUDING = new Map<string, string>([
  ...Object.entries(EXCLUDING_PARAMETER),
  ['withoutResourceUuid', 'excludeWithoutResourceUuid'],
]);
const NAMES = [...EXCLUDING.keys()];

/** A flag that adds to the filters: `--filter` with `name=value`, or one with a name of its own and the value alone. */
class FilterOption extends RepeatableOption {
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
  const [, named = '', operator, value = ''] = /^(\w+)(!?=)(.*)$/s.exec(text) ?? [];
  const name = operator === '!=' ? EXCLUDING.get(named) : named;
  if (name === undefined || !isFilter(name)) {
    throw new InvalidArgumentError(
      `It must be name=value or name!=value, such as resourceType=agent, with a name of ${NAMES.join(', ')}.`,
    );
  }
  const read = parsedBy<string | boolean>(FILTERS[name], value);
  return { ...before, [name]: typeof read === 'boolean' ? read : [...[before[name] ?? []].flat(), read] };
}

function isFilter(name: string): name is keyof Filters {
  return Object.hasOwn(FILTERS, name);
}

export interface EventsFlags extends WindowFlags, FilterFlags {
  readonly includeVoided?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

/** The query for the events behind a figure. @throws CommandError when the flags contradict each other */
export function eventsQueryOf(flags: EventsFlags, now: Date): EventsQuery & RequestedWindow['sent'] {
  const { filter, includeVoided, limit, cursor } = flags;
  const window = windowOf(flags, now);
  requireWindowOf(flags, window);
  return { ...window.sent, ...filter, includeVoided, limit, cursor };
}

export interface QueryFlags extends Omit<EventsFlags, 'includeVoided'> {
  readonly allAccounts?: boolean | undefined;
  readonly resolution?: Resolution | undefined;
  readonly groupBy?: readonly MetricsDimension[] | undefined;
  /** True: what fits the window. */
  readonly compare?: Comparison | true | undefined;
}

export function withQuery(command: Command): Command {
  const grouped = withWindow(command)
    .addOption(
      new Option('--resolution <resolution>', 'length of a bucket (default: by the window)').choices(RESOLUTIONS),
    )
    .addOption(
      new RepeatableOption(
        '--group-by <dimensions>',
        `up to ${MAX_GROUP_BY_DIMENSIONS}, with commas between, or repeated`,
      )
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
    .option(
      '--cursor <cursor>',
      'the page of this cursor, meta.nextCursor of a response; with its window, by --from and --to',
    );
}

export interface Query {
  /** What the API is sent. */
  readonly sent: MetricsQuery;
  readonly groupBy: readonly MetricsDimension[];
  /** What the API is sent about the time before, and how far back that is, such as `4 weeks earlier`; undefined: not compared. */
  readonly compared: { readonly sent: MetricsQuery; readonly distance: string } | undefined;
}

/** @throws CommandError when the flags contradict each other */
export function queryOf(flags: QueryFlags, now: Date): Query {
  const { groupBy = [], filter, limit, cursor, compare } = flags;
  if (!flags.allAccounts && (groupBy.includes('account') || filter?.account || filter?.excludeAccount)) {
    throw usageError('account is a dimension and a filter with --all-accounts alone');
  }
  const window = windowOf(flags, now);
  requireWindowOf(flags, window);
  const { sent: times, resolution: byWindow, whole, months, asOf } = window;
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
function groupByOf(text: string, before: readonly MetricsDimension[] = []): readonly MetricsDimension[] {
  const names = [...before, ...text.split(',').map((name) => name.trim())];
  return parsedBy(ACCOUNTS_METRICS_PARAMETERS.groupBy, names.join(','));
}
