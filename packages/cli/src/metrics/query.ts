/** Defines the flags of a query, and converts them to API requests: the window, filters, groups and comparison. */
import {
  ACCOUNT_FILTERS,
  ACCOUNTS_METRICS_PARAMETERS,
  automaticResolution,
  billingDimensions,
  COMPARISONS,
  type Comparison,
  comparedWindow,
  defaultComparison,
  defaultResolution,
  type EpochMs,
  EXCLUDING_PARAMETER,
  exceededCap,
  FILTER_PARAMETERS,
  filterQuery,
  formatTimestamp,
  MAX_GROUP_BY_DIMENSIONS,
  MAX_METRICS_PAGE,
  METRICS_DIMENSIONS,
  type MetricsDimension,
  nameText,
  type PeriodChoice,
  periodMonths,
  periodWindow,
  RESOLUTIONS,
  type Resolution,
  resourceTypes,
  START_OF_CALENDAR,
  timesOf,
  upTo,
  type ViewQuery,
  type Window,
  wholeMonths,
} from '@meterline/catalog';
import type { EventsQuery, MetricsQuery } from '@meterline/client';
import { type Command, InvalidArgumentError, Option } from 'commander';
import type { z } from 'zod';
import { usageError } from '../failure.js';
import {
  lastSpan,
  monthOf,
  parsedBy,
  requireStarted,
  SPANS,
  type Span,
  spanOf,
  timeOf,
  wholeNumber,
} from '../flags.js';
import { RepeatableOption } from '../repeated.js';

export interface WindowFlags {
  readonly since?: Span | undefined;
  readonly month?: Window | undefined;
  readonly from?: EpochMs | undefined;
  readonly to?: EpochMs | undefined;
  /** The period of a saved view, if no other flag names a window. */
  readonly period?: PeriodChoice | undefined;
}

const DEFAULT_SPAN: Span = { count: 30, unit: 'daily' };

export function withWindow(command: Command): Command {
  return command
    .addOption(
      new Option('--month <month>', 'Calendar month, such as 2026-11. The current month is shown up to now')
        .argParser(monthOf)
        .conflicts(['since', 'from', 'to']),
    )
    .addOption(
      new Option('--since <span>', `Show the most recent ${SPANS} (default: 30d)`).argParser(spanOf).conflicts('from'),
    )
    .option('--from <time>', 'Start time in UTC, inclusive: 2026-10-01 or 2026-10-01T12:00:00Z', timeOf)
    .option('--to <time>', 'End time in UTC, exclusive (default: now)', timeOf);
}

export interface RequestedWindow {
  /** The whole period, including the part of the current month or day that is in the future. */
  readonly whole: Window;
  /** The number of calendar months, or undefined if the flags do not name whole months. */
  readonly months: number | undefined;
  readonly sent: ReturnType<typeof timesOf>;
  /** The default bucket length, chosen by the length of the whole period. So the current month has daily buckets even on its first day. */
  readonly resolution: Resolution;
  /** The current time, rounded down to the second to keep responses readable. */
  readonly asOf: EpochMs;
}

export function windowOf(flags: WindowFlags, now: Date): RequestedWindow {
  if (flags.month) requireStarted(flags.month, now);
  const second = Math.floor(now.getTime() / 1_000) * 1_000;
  const start = flags.month?.startTime ?? flags.from ?? 0;
  const named = flags.month !== undefined || flags.from !== undefined;
  // Round up if the window starts within the current second. Otherwise the window would be empty.
  const asOf = start >= second && start <= now.getTime() ? second + 1_000 : second;
  const { whole, isNamed } = wholeWindow(flags, asOf);
  if (whole.startTime >= whole.endTime) {
    throw usageError(`--from must be before ${flags.to === undefined ? 'now' : '--to'}`);
  }
  if (whole.startTime < START_OF_CALENDAR)
    throw usageError('the window starts before the year 0001; choose a later start');
  return {
    whole,
    // A span never counts as months, because the default of 30 days may happen to cover a calendar month.
    months: flags.period ? periodMonths(flags.period) : named ? wholeMonths(whole) : undefined,
    sent: timesOf(isNamed ? whole : upTo(whole, asOf)),
    resolution: flags.period ? automaticResolution(flags.period, whole) : defaultResolution(whole),
    asOf,
  };
}

/** Returns the window. `isNamed` is true if the flags fix both of its ends. The request then has this window, even if it ends in the future. */
function wholeWindow(
  { since, month, from, to, period }: WindowFlags,
  asOf: EpochMs,
): { whole: Window; isNamed: boolean } {
  if (period) return { whole: periodWindow(period, asOf), isNamed: !('preset' in period) };
  if (month) return { whole: month, isNamed: false };
  if (from !== undefined) return { whole: { startTime: from, endTime: to ?? asOf }, isNamed: true };
  const span = since ?? DEFAULT_SPAN;
  if (span.unit === 'exact') return { whole: lastSpan(span, to ?? asOf), isNamed: true };
  // The last day or hour of the span is the one that contains the instant before --to.
  if (to === undefined) return { whole: lastSpan(span, asOf), isNamed: false };
  return { whole: { startTime: lastSpan(span, to - 1).startTime, endTime: to }, isNamed: true };
}

/** Rejects a cursor if the window ends now: a cursor is valid for one window only, and this window changes every second. @throws CommandError */
function requireFixedWindow({ cursor, to }: Pick<EventsFlags, 'cursor' | 'to'>, { sent, asOf }: RequestedWindow): void {
  if (cursor === undefined || to !== undefined || sent.endTime !== formatTimestamp(asOf)) return;
  throw usageError('--cursor needs the window of its response: set --from to its startTime and --to to its endTime');
}

/** The API checks resource types and billing dimensions, because the platform may have added some. */
const FILTERS = {
  ...FILTER_PARAMETERS,
  ...ACCOUNT_FILTERS,
  resourceType: nameText,
  excludeResourceType: nameText,
  billingDimension: nameText,
  excludeBillingDimension: nameText,
};
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
const ALERT_NAMES = NAMES.filter((name) => !['account', 'withoutResourceUuid'].includes(name));

/** A flag that adds a filter: `--filter name=value`, or a flag with a fixed name such as `--workspace value`. */
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

/** Adds the filter flags. All of them can be repeated. Several values of one name are alternatives. */
export function withFilters(command: Command): Command {
  return withInclusiveFilters(
    command
      .addOption(
        new FilterOption(
          '--filter <name=value>',
          'Filter by an API field, such as resourceType=agent or resourceType!=agent; repeatable',
          undefined,
          [...NAMES.map((name) => `${name}=`), ...NAMES.map((name) => `${name}!=`)],
        ),
      )
      .addOption(
        new FilterOption(
          '--without-resource-uuid',
          'Filter by usage without a resource UUID',
          'withoutResourceUuid',
        ).preset('true'),
      ),
  );
}

/** Adds the filter flags of alerts, which cannot exclude. */
export function withAlertFilters(command: Command): Command {
  const description = 'Count only usage with this value, such as resourceType=agent; repeatable';
  const choices = ALERT_NAMES.map((name) => `${name}=`);
  return withInclusiveFilters(
    command.addOption(new FilterOption('--filter <name=value>', description, undefined, choices)),
  );
}

function withInclusiveFilters(command: Command): Command {
  return command
    .addOption(new FilterOption('--workspace <name>', 'Filter by workspace (admins only); repeatable', 'workspace'))
    .addOption(
      new FilterOption(
        '--resource-type <type>',
        'Filter by resource type; repeatable',
        'resourceType',
        resourceTypes(),
      ),
    )
    .addOption(new FilterOption('--resource-name <name>', 'Filter by resource name; repeatable', 'resourceName'))
    .addOption(new FilterOption('--resource-uuid <uuid>', 'Filter by resource UUID; repeatable', 'resourceUuid'))
    .addOption(
      new FilterOption(
        '--billing-dimension <dimension>',
        'Filter by billing dimension; repeatable',
        'billingDimension',
        billingDimensions(),
      ),
    );
}

/**
 * Adds a filter such as `resourceType=agent`, `resourceType!=agent` or `excludeResourceType=agent` (the API's own name) to the earlier
 * filters. The value may contain an equals sign.
 * @throws InvalidArgumentError
 */
function filterOf(text: string, before: Filters = {}): Filters {
  const [, named = '', operator, value = ''] = /^(\w+)(!?=)(.*)$/s.exec(text) ?? [];
  const name = operator === '!=' ? EXCLUDING.get(named) : named;
  if (name === undefined || !isFilter(name)) {
    throw new InvalidArgumentError(
      `It must be name=value or name!=value, such as resourceType=agent. Valid names: ${NAMES.join(', ')}.`,
    );
  }
  const parsed = parsedBy<string | boolean>(FILTERS[name], value);
  return { ...before, [name]: typeof parsed === 'boolean' ? parsed : [...[before[name] ?? []].flat(), parsed] };
}

function isFilter(name: string): name is keyof Filters {
  return Object.hasOwn(FILTERS, name);
}

export const CURSOR_HELP = 'Page to read: meta.nextCursor of the previous page; needs the same --from and --to';

export interface EventsFlags extends WindowFlags, FilterFlags {
  readonly includeVoided?: boolean | undefined;
  readonly orderBy?: EventsQuery['orderBy'];
  readonly order?: EventsQuery['order'];
  readonly limit?: number | undefined;
  readonly cursor?: string | undefined;
}

export function eventsQueryOf(flags: EventsFlags, now: Date): EventsQuery & RequestedWindow['sent'] {
  const { filter, includeVoided, orderBy, order, limit, cursor } = flags;
  const window = windowOf(flags, now);
  requireFixedWindow(flags, window);
  return { ...window.sent, ...filter, includeVoided, orderBy, order, limit, cursor };
}

export interface QueryFlags extends Omit<EventsFlags, 'includeVoided' | 'orderBy' | 'order' | 'filter'> {
  readonly filter?: Partial<Pick<MetricsQuery, keyof Filters>>;
  readonly allAccounts?: boolean | undefined;
  readonly resolution?: Resolution | undefined;
  readonly groupBy?: readonly MetricsDimension[] | undefined;
  /** The value `true` means: compare windows of whole months by months, and other windows by weeks. */
  readonly compare?: Comparison | true | undefined;
}

export function withQuery(command: Command): Command {
  const grouped = withWindow(command)
    .addOption(
      new Option(
        '--resolution <resolution>',
        'Length of each bucket (default: chosen by the length of the window)',
      ).choices(RESOLUTIONS),
    )
    .addOption(
      new RepeatableOption(
        '--group-by <dimensions>',
        `Group by up to ${MAX_GROUP_BY_DIMENSIONS} dimensions, separated by commas; repeatable`,
      )
        .choices(METRICS_DIMENSIONS)
        .argParser(groupByOf),
    )
    .addOption(
      new Option(
        '--compare [by]',
        'Compare with earlier usage: "months" goes back by calendar months, "period" by whole weeks (default: months for whole months, otherwise period)',
      )
        .choices(COMPARISONS)
        .conflicts('cursor'),
    );
  return withFilters(grouped)
    .addOption(
      new Option(
        '--all-accounts',
        'Show all accounts that the API key can read. Adds the dimension "account" to --group-by and --filter',
      ).conflicts('account'),
    )
    .option('--limit <n>', `Maximum number of groups per page, up to ${MAX_METRICS_PAGE} (default: 100)`, (text) =>
      wholeNumber(text, 1, MAX_METRICS_PAGE),
    )
    .option('--cursor <cursor>', CURSOR_HELP);
}

/** Completes the flags: takes the parts of the query that no flag sets from a saved view. */
export function flagsWithView(flags: QueryFlags, view: ViewQuery, now: Date): QueryFlags {
  const hasWindow = [flags.month, flags.since, flags.from, flags.to].some((flag) => flag !== undefined);
  const period = hasWindow ? undefined : view.period;
  const { whole } = windowOf({ ...flags, period }, now);
  // Like the web page, ignore the view's resolution if the window is too long for it. The resolution is then chosen automatically.
  const fits = view.resolution !== undefined && exceededCap(view.resolution, whole) === undefined;
  const { groupBy } = view;
  const compare = view.compare === 'period' ? true : view.compare;
  const resolution = fits ? view.resolution : undefined;
  return { resolution, groupBy, filter: filterQuery(view.filters), compare, ...flags, period };
}

export interface Query {
  readonly sent: MetricsQuery;
  readonly groupBy: readonly MetricsDimension[];
  /** The request for the previous period, and how far back it is, such as `4 weeks earlier`. Undefined without --compare. */
  readonly compared: { readonly sent: MetricsQuery; readonly distance: string } | undefined;
}

export function queryOf(flags: QueryFlags, now: Date): Query {
  const { groupBy = [], filter, limit, cursor, compare } = flags;
  if (!flags.allAccounts && (groupBy.includes('account') || filter?.account || filter?.excludeAccount)) {
    throw usageError('grouping or filtering by account needs --all-accounts');
  }
  const window = windowOf(flags, now);
  requireFixedWindow(flags, window);
  const { sent: times, resolution: byWindow, whole, months, asOf } = window;
  const resolution = flags.resolution ?? byWindow;
  const common = { ...filter, resolution, groupBy, limit };
  const sent = { ...common, ...times, cursor };
  if (compare === undefined) return { sent, groupBy, compared: undefined };
  const comparison = compare === true ? defaultComparison(months) : compare;
  const before = comparedWindow(comparison, { window: whole, months, resolution, asOf });
  if (!before) throw usageError('--compare: the window is in the future, or the previous period starts before 1970');
  return { sent, groupBy, compared: { sent: { ...common, ...timesOf(before.window) }, distance: before.distance } };
}

/** Adds dimensions to the dimensions of earlier flags. @throws InvalidArgumentError */
function groupByOf(text: string, before: readonly MetricsDimension[] = []): readonly MetricsDimension[] {
  const names = [...before, ...text.split(',').map((name) => name.trim())];
  return parsedBy(ACCOUNTS_METRICS_PARAMETERS.groupBy, names.join(','));
}
