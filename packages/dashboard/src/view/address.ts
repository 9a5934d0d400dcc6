/**
 * The view in the address bar, so that a link, a reload and the back button show the same view again; and the view as a query
 * string, which leaves out defaults. Parts that cannot be read are ignored, so that a mistyped link still shows something.
 */
import {
  type Comparison,
  type EntryField,
  formatTimestamp,
  type GroupByDimension,
  isBillingDimension,
  isGroupByDimension,
  isResolution,
  isResourceType,
  parseTimestamp,
} from '@meterline/catalog';
import { useMemo, useSyncExternalStore } from 'react';
import { isPresetId, type PeriodChoice } from '../period/period.js';
import type { Filters } from './filters.js';
import {
  DEFAULT_VIEW,
  MAX_BREAKDOWN,
  PAGE_SIZES,
  type PageSize,
  SORT_COLUMNS,
  type Sort,
  type TrailStep,
  type View,
} from './view.js';

const UNGROUPED = 'none';
const DESCENDING = '-';
const ON = '1';
/** Before the name of a filter that excludes its values. */
const NOT = 'not-';
/** A longer trail is of no use as a breadcrumb, and would make the address too long. */
const MAX_TRAIL = 8;

const FILTER_NAME = {
  workspace: 'workspace',
  resourceType: 'type',
  resourceName: 'name',
  resourceUuid: 'uuid',
  billingDimension: 'dimension',
} as const satisfies Record<EntryField, string>;
const FILTER_FIELDS = Object.keys(FILTER_NAME) as readonly EntryField[];

export function writeView(view: View): string {
  const query = new URLSearchParams();
  const put = (name: string, value: string | undefined, byDefault?: string) => {
    if (value !== undefined && value !== byDefault) query.set(name, value);
  };
  put('account', view.account);
  writeStep(view, query);
  put('measure', view.measure, DEFAULT_VIEW.measure);
  put('compare', view.compare);
  put('cumulative', view.isCumulative ? ON : undefined);
  put('show', view.asTable ? 'table' : undefined);
  put('exact', view.isExact ? ON : undefined);
  put('live', view.isLive ? ON : undefined);
  put('sort', writeSort(view.sort), writeSort(DEFAULT_VIEW.sort));
  put('search', view.search || undefined);
  put('rows', String(view.pageSize), String(DEFAULT_VIEW.pageSize));
  put('page', String(view.page), '1');
  for (const step of view.trail.slice(-MAX_TRAIL)) {
    const before = new URLSearchParams();
    writeStep(step, before);
    query.append('via', before.toString());
  }
  return query.toString();
}

function writeStep({ period, resolution, groupBy, filters }: TrailStep, query: URLSearchParams): void {
  if ('preset' in period) {
    if (period.preset !== writePreset(DEFAULT_VIEW.period)) query.set('period', period.preset);
  } else {
    query.set('from', formatTimestamp(period.from));
    query.set('to', formatTimestamp(period.to));
  }
  if (resolution) query.set('resolution', resolution);
  const group = groupBy.join(',') || UNGROUPED;
  if (group !== DEFAULT_VIEW.groupBy.join(',')) query.set('group', group);
  for (const field of FILTER_FIELDS) {
    const filter = filters[field];
    const name = `${filter?.isExcluded ? NOT : ''}${FILTER_NAME[field]}`;
    for (const value of filter?.values ?? []) query.append(name, value);
  }
}

export function readView(text: string): View {
  const query = new URLSearchParams(text);
  const given = (name: string) => query.get(name) || undefined;
  return {
    account: given('account'),
    ...readStep(query),
    measure: given('measure') === 'usage' ? 'usage' : 'cost',
    compare: readComparison(given('compare')),
    isCumulative: given('cumulative') === ON,
    asTable: given('show') === 'table',
    isExact: given('exact') === ON,
    isLive: given('live') === ON,
    sort: readSort(given('sort')),
    search: given('search') ?? '',
    pageSize: readPageSize(given('rows')),
    page: readPage(given('page')),
    trail: query
      .getAll('via')
      .slice(-MAX_TRAIL)
      .map((step) => readStep(new URLSearchParams(step))),
  };
}

function readStep(query: URLSearchParams): TrailStep {
  const given = (name: string) => query.get(name) || undefined;
  return {
    period: readPeriod(given('period'), given('from'), given('to')),
    resolution: known(given('resolution'), isResolution),
    groupBy: readGroupBy(given('group')),
    filters: readFilters(query),
  };
}

function writePreset(period: PeriodChoice): string | undefined {
  return 'preset' in period ? period.preset : undefined;
}

function readPeriod(preset = '', from = '', to = ''): PeriodChoice {
  if (isPresetId(preset)) return { preset };
  const [start, end] = [parseTimestamp(from), parseTimestamp(to)];
  return start !== undefined && end !== undefined && start >= 0 && start < end
    ? { from: start, to: end }
    : DEFAULT_VIEW.period;
}

function readGroupBy(text: string | undefined): readonly GroupByDimension[] {
  if (text === undefined) return DEFAULT_VIEW.groupBy;
  if (text === UNGROUPED) return [];
  const dimensions = [...new Set(text.split(','))].filter(isGroupByDimension);
  return dimensions.length > 0 ? dimensions.slice(0, MAX_BREAKDOWN) : DEFAULT_VIEW.groupBy;
}

function readFilters(query: URLSearchParams): Filters {
  const filters: { -readonly [Field in keyof Filters]: Filters[Field] } = {};
  for (const field of FILTER_FIELDS) {
    const included = readValues(query, field, FILTER_NAME[field]);
    const excluded = readValues(query, field, `${NOT}${FILTER_NAME[field]}`);
    if (included.length > 0) filters[field] = { values: included, isExcluded: false };
    else if (excluded.length > 0) filters[field] = { values: excluded, isExcluded: true };
  }
  return filters;
}

function readValues(query: URLSearchParams, field: EntryField, name: string): readonly string[] {
  return [...new Set(query.getAll(name))].filter((value) => {
    if (field === 'resourceType') return isResourceType(value);
    if (field === 'billingDimension') return isBillingDimension(value);
    // Empty: what has no instance id.
    return value !== '' || field === 'resourceUuid';
  });
}

function writeSort({ column, descending }: Sort): string {
  return `${descending ? DESCENDING : ''}${column}`;
}

function readSort(text = ''): Sort {
  const descending = text.startsWith(DESCENDING);
  const column = SORT_COLUMNS.find((name) => name === text.slice(descending ? 1 : 0));
  return column ? { column, descending } : DEFAULT_VIEW.sort;
}

/** `previous` is what older links say. */
function readComparison(text = ''): Comparison | undefined {
  if (text === 'months') return 'months';
  return text === 'period' || text === 'previous' ? 'period' : undefined;
}

function readPageSize(text = ''): PageSize {
  return PAGE_SIZES.find((size) => String(size) === text) ?? DEFAULT_VIEW.pageSize;
}

function readPage(text = ''): number {
  return /^[1-9]\d{0,5}$/.test(text) ? Number(text) : 1;
}

function known<Value extends string>(
  text: string | undefined,
  isKnown: (text: string) => text is Value,
): Value | undefined {
  return text !== undefined && isKnown(text) ? text : undefined;
}

const CHANGED = 'meterline:view';

function subscribe(listener: () => void): () => void {
  window.addEventListener('popstate', listener);
  window.addEventListener(CHANGED, listener);
  return () => {
    window.removeEventListener('popstate', listener);
    window.removeEventListener(CHANGED, listener);
  };
}

export function viewHref(view: View): string {
  const query = writeView(view);
  return query === '' ? location.pathname : `${location.pathname}?${query}`;
}

/** Shows another view, as a step in the browser's history. */
export function navigate(view: View): void {
  if (viewHref(view) === `${location.pathname}${location.search}`) return;
  history.pushState(null, '', viewHref(view));
  window.dispatchEvent(new Event(CHANGED));
}

/** Completes the view without a step in the history. */
export function replaceView(view: View): void {
  history.replaceState(null, '', viewHref(view));
  window.dispatchEvent(new Event(CHANGED));
}

export function useView(): View {
  const query = useSyncExternalStore(subscribe, () => location.search);
  return useMemo(() => readView(query), [query]);
}
