/**
 * Defines the query of a view: the parameters in the address of the web page, such as `period=month&group=workspace`, without the account. Saved
 * views store the same text, so that the page, the API and the command line read it alike. Default values are omitted.
 */
import {
  bucketStart,
  defaultResolution,
  END_OF_TIME,
  type EpochMs,
  formatTimestamp,
  lastUnits,
  parseTimestamp,
  plusMonths,
  RESOLUTIONS,
  type Resolution,
  type Window,
  wholeMonths,
} from './calendar.js';
import { COMPARISONS, type Comparison } from './comparison.js';
import {
  ENTRY_FIELD,
  type EntryField,
  GROUP_BY_DIMENSIONS,
  isDimensionName,
  isResourceTypeName,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  type MetricsDimension,
} from './dimensions.js';

const QUARTER_MONTHS = 3;

const last = (count: number, unit: 'hourly' | 'daily') => (now: EpochMs) => lastUnits(count, unit, now);
const toDate = (startOf: (now: EpochMs) => EpochMs) => (now: EpochMs) => {
  return { startTime: startOf(now), endTime: lastUnits(1, 'daily', now).endTime };
};
const monthAt = (now: EpochMs, months = 0) => plusMonths(bucketStart(now, 'monthly'), months);
const monthOfYear = (now: EpochMs) => new Date(now).getUTCMonth();

/**
 * The periods that users can choose by name. A window has whole UTC hours or days. It includes the current hour or day, except for `last-month`.
 * `months` is the length of the full period, for comparisons: the year to date is compared with the same part of the previous year.
 */
export const PRESETS = [
  { id: '24h', label: 'Last 24 hours', window: last(24, 'hourly') },
  { id: '7d', label: 'Last 7 days', window: last(7, 'daily') },
  { id: '30d', label: 'Last 30 days', window: last(30, 'daily') },
  { id: '90d', label: 'Last 90 days', window: last(90, 'daily') },
  { id: 'week', label: 'Week to date', window: toDate((now) => bucketStart(now, 'weekly')) },
  { id: 'month', label: 'Month to date', months: 1, window: toDate(monthAt) },
  {
    id: 'last-month',
    label: 'Last month',
    months: 1,
    window: (now) => ({ startTime: monthAt(now, -1), endTime: monthAt(now) }),
  },
  {
    id: 'quarter',
    label: 'Quarter to date',
    months: QUARTER_MONTHS,
    window: toDate((now) => monthAt(now, -(monthOfYear(now) % QUARTER_MONTHS))),
  },
  { id: 'year', label: 'Year to date', months: 12, window: toDate((now) => monthAt(now, -monthOfYear(now))) },
  { id: '12m', label: 'Last 12 months', months: 12, bars: 'monthly', window: toDate((now) => monthAt(now, -11)) },
] as const satisfies readonly Preset[];

interface Preset {
  readonly id: string;
  readonly label: string;
  readonly months?: number;
  /** The default resolution. If undefined, it depends on the length of the window. */
  readonly bars?: Resolution;
  readonly window: (now: EpochMs) => Window;
}
type PresetId = (typeof PRESETS)[number]['id'];

export type PeriodChoice = { readonly preset: PresetId } | { readonly from: EpochMs; readonly to: EpochMs };

export function presetOf(id: PresetId): Preset {
  return PRESETS.find((preset) => preset.id === id) ?? PRESETS[0];
}

export function periodWindow(period: PeriodChoice, now: EpochMs): Window {
  return 'preset' in period ? presetOf(period.preset).window(now) : { startTime: period.from, endTime: period.to };
}

/** Returns the resolution that applies if the user has not chosen one. */
export function automaticResolution(period: PeriodChoice, window: Window): Resolution {
  return ('preset' in period ? presetOf(period.preset).bars : undefined) ?? defaultResolution(window);
}

/** Returns how many calendar months a period has, or undefined if they are not whole. A preset such as `month` counts as a whole month. */
export function periodMonths(period: PeriodChoice): number | undefined {
  if ('preset' in period) return presetOf(period.preset).months;
  return wholeMonths({ startTime: period.from, endTime: period.to });
}

/** The maximum number of saved views per account. */
export const MAX_VIEWS = 100;

export type Measure = 'cost' | 'usage';

export const SORT_COLUMNS = ['cost', 'name', 'usage', 'change'] as const;
export type SortColumn = (typeof SORT_COLUMNS)[number];
export interface Sort {
  readonly column: SortColumn;
  readonly descending: boolean;
}

export const PAGE_SIZES = [25, 50, 100] as const;
export type PageSize = (typeof PAGE_SIZES)[number];

export interface Filter {
  /** At least one value. */
  readonly values: readonly string[];
  /** Whether the filter matches every value except these. */
  readonly isExcluded: boolean;
}

export type Filters = { readonly [Field in EntryField]?: Filter | undefined };

export interface ViewQuery {
  readonly period: PeriodChoice;
  /** Undefined means automatic: the resolution depends on the length of the window. */
  readonly resolution: Resolution | undefined;
  /** At most {@link MAX_GROUP_BY_DIMENSIONS} dimensions, in the order that the user chose. */
  readonly groupBy: readonly MetricsDimension[];
  readonly filters: Filters;
  readonly measure: Measure;
  /** In a view, `period` means {@link defaultComparison}: a month is compared with the previous month. */
  readonly compare: Comparison | undefined;
  /** Whether each bucket includes the amounts of the previous buckets. */
  readonly isCumulative: boolean;
  readonly asTable: boolean;
  /** Whether the page shows every digit instead of two decimals. */
  readonly isExact: boolean;
  readonly isLive: boolean;
  readonly sort: Sort;
  /** Text that the names of the listed groups must contain. */
  readonly search: string;
  readonly pageSize: PageSize;
  readonly page: number;
}

export const DEFAULT_VIEW_QUERY: ViewQuery = {
  period: { preset: '30d' },
  resolution: undefined,
  groupBy: ['resource_type'],
  filters: {},
  measure: 'cost',
  compare: undefined,
  isCumulative: false,
  asTable: false,
  isExact: false,
  isLive: false,
  sort: { column: 'cost', descending: true },
  search: '',
  pageSize: PAGE_SIZES[0],
  page: 1,
};

interface Codec<Part> {
  /** Returns undefined if the parameter is missing or invalid. */
  readonly read: (query: URLSearchParams) => Part | undefined;
  readonly write: (part: Part) => readonly (readonly [string, string])[];
}

function codec<Part>(
  name: string,
  read: (text: string) => Part | undefined,
  write: (part: Part) => string = String,
): Codec<Part> {
  const readQuery = (query: URLSearchParams) => {
    const text = query.get(name);
    return text === null ? undefined : read(text);
  };
  return { read: readQuery, write: (part) => [[name, write(part)]] };
}
const choice = <Value extends string | number>(name: string, values: readonly Value[]) =>
  codec<Value>(name, (text) => values.find((value) => String(value) === text));
/** Like `choice`, but the value may be undefined. Undefined is the default, so it is never written. */
const optionalChoice = <Value extends string>(name: string, values: readonly Value[]): Codec<Value | undefined> => ({
  read: choice(name, values).read,
  write: (part) => (part === undefined ? [] : [[name, part]]),
});
const flag = (name: string, on = '1') =>
  codec(
    name,
    (text) => text === on,
    (part) => (part ? on : ''),
  );

const NO_GROUPING = 'none';
const SORTS = SORT_COLUMNS.flatMap((column) => [
  { text: column, sort: { column, descending: false } },
  { text: `-${column}`, sort: { column, descending: true } },
]);
const preset = choice(
  'period',
  PRESETS.map(({ id }) => id),
);

const CODECS: { readonly [Part in keyof ViewQuery]: Codec<ViewQuery[Part]> } = {
  period: {
    read: (query) => {
      const id = preset.read(query);
      if (id !== undefined) return { preset: id };
      const [from = -1, to = -1] = ['from', 'to'].map((name) => parseTimestamp(query.get(name) ?? ''));
      return from >= 0 && from < to && to <= END_OF_TIME ? { from, to } : undefined;
    },
    write: (period) => {
      if ('preset' in period) return preset.write(period.preset);
      return [['from', formatTimestamp(period.from)] as const, ['to', formatTimestamp(period.to)] as const];
    },
  },
  resolution: optionalChoice('resolution', RESOLUTIONS),
  groupBy: codec<ViewQuery['groupBy']>(
    'group',
    (text) => {
      const names = [...new Set(text.split(','))];
      const known = names.flatMap((name) => METRICS_DIMENSIONS.filter((dimension) => dimension === name));
      return known.length > 0 || text === NO_GROUPING ? known.slice(0, MAX_GROUP_BY_DIMENSIONS) : undefined;
    },
    (dimensions) => dimensions.join(',') || NO_GROUPING,
  ),
  filters: { read: readFilters, write: writeFilters },
  measure: choice('measure', ['cost', 'usage']),
  compare: optionalChoice('compare', COMPARISONS),
  isCumulative: flag('cumulative'),
  asTable: flag('show', 'table'),
  isExact: flag('exact'),
  isLive: flag('live'),
  sort: codec(
    'sort',
    (text) => SORTS.find((each) => each.text === text)?.sort,
    ({ column, descending }) => `${descending ? '-' : ''}${column}`,
  ),
  search: codec('search', (text) => text),
  pageSize: choice('rows', PAGE_SIZES),
  page: codec('page', (text) => (/^[1-9]\d{0,5}$/.test(text) ? Number(text) : undefined)),
};
const PARTS = Object.keys(CODECS) as readonly (keyof ViewQuery)[];

/** Parameter names of the filters. The prefix `not-` marks a filter that excludes its values. */
const FILTER_NAME = {
  workspace: 'workspace',
  resourceType: 'type',
  resourceName: 'name',
  resourceUuid: 'uuid',
  billingDimension: 'dimension',
} as const satisfies Record<EntryField, string>;

function writeFilters(filters: Filters) {
  return GROUP_BY_DIMENSIONS.flatMap((dimension) => {
    const field = ENTRY_FIELD[dimension];
    const { values = [], isExcluded = false } = filters[field] ?? {};
    return values.map((value) => [`${isExcluded ? 'not-' : ''}${FILTER_NAME[field]}`, value] as const);
  });
}

function readFilters(query: URLSearchParams): Filters {
  const filters: { -readonly [Field in keyof Filters]: Filters[Field] } = {};
  for (const dimension of GROUP_BY_DIMENSIONS) {
    const field = ENTRY_FIELD[dimension];
    for (const isExcluded of [true, false]) {
      const texts = query.getAll(`${isExcluded ? 'not-' : ''}${FILTER_NAME[field]}`);
      const values = [...new Set(texts)].filter((value) => isValue(field, value));
      if (values.length > 0) filters[field] = { values, isExcluded };
    }
  }
  return filters;
}

function isValue(field: EntryField, value: string): boolean {
  // The page may not know yet what the platform has added, so only the form of the name is checked here. The API checks whether it exists.
  if (field === 'resourceType') return isResourceTypeName(value);
  if (field === 'billingDimension') return isDimensionName(value);
  // The empty value selects usage without a resource UUID.
  return value !== '' || field === 'resourceUuid';
}

type Pair = readonly [name: string, value: string];

function pairsOf<Part extends keyof ViewQuery>(part: Part, view: ViewQuery): readonly Pair[] {
  return CODECS[part].write(view[part]);
}

export function writeViewQuery(view: ViewQuery): Pair[] {
  return PARTS.flatMap((part) => {
    const pairs = pairsOf(part, view);
    return String(pairs) === String(pairsOf(part, DEFAULT_VIEW_QUERY)) ? [] : pairs;
  });
}

/** Invalid parameters are ignored, so that a mistyped link still shows a page. */
export function readViewQuery(query: URLSearchParams): ViewQuery {
  const view: { -readonly [Part in keyof ViewQuery]: ViewQuery[Part] } = { ...DEFAULT_VIEW_QUERY };
  const read = <Part extends keyof ViewQuery>(part: Part) => {
    view[part] = CODECS[part].read(query) ?? DEFAULT_VIEW_QUERY[part];
  };
  for (const part of PARTS) read(part);
  return view;
}

/** Returns the first parameter that {@link readViewQuery} would ignore, such as `period=9d`, or undefined if it reads all of them. */
export function ignoredViewParameter(query: URLSearchParams): string | undefined {
  const view = readViewQuery(query);
  const written = new Set(PARTS.flatMap((part) => pairsOf(part, view)).map(String));
  const sent = [...query];
  const ignored = sent.find((pair, position) => {
    if (written.has(String(pair))) return false;
    const others = new URLSearchParams(sent.filter((_, index) => index !== position));
    return JSON.stringify(readViewQuery(others)) === JSON.stringify(view);
  });
  return ignored?.join('=');
}

/** Returns whether a view groups or filters by workspace, which the API allows only for admins (docs/api-contract.md). */
export function showsWorkspaces({ groupBy, filters }: ViewQuery): boolean {
  return groupBy.includes('workspace') || filters.workspace !== undefined;
}

/** Converts the filters of a view to API parameters. Each field has parameters for values to include and for values to exclude. */
export function filterQuery(filters: Filters) {
  const included = valuesOf(filters, false);
  const excluded = valuesOf(filters, true);
  return {
    ...included,
    excludeWorkspace: excluded.workspace,
    excludeResourceType: excluded.resourceType,
    excludeResourceName: excluded.resourceName,
    excludeResourceUuid: excluded.resourceUuid,
    excludeWithoutResourceUuid: excluded.withoutResourceUuid,
    excludeBillingDimension: excluded.billingDimension,
  };
}

function valuesOf(filters: Filters, isExcluded: boolean) {
  const valuesIn = (field: EntryField) => {
    const filter = filters[field];
    return filter?.isExcluded === isExcluded ? filter.values : [];
  };
  const uuids = valuesIn('resourceUuid');
  return {
    workspace: oneOrMore(valuesIn('workspace')),
    resourceType: oneOrMore(valuesIn('resourceType')),
    resourceName: oneOrMore(valuesIn('resourceName')),
    resourceUuid: oneOrMore(uuids.filter((value) => value !== '')),
    // The API has a separate parameter for usage without a resource UUID.
    withoutResourceUuid: uuids.includes('') || undefined,
    billingDimension: oneOrMore(valuesIn('billingDimension')),
  };
}

/** Returns a list of one value as the value itself, which is how people write it. */
function oneOrMore<Value>(values: readonly Value[]): Value | readonly Value[] | undefined {
  return values.length > 1 ? values : values[0];
}
