/**
 * The view in the address bar, so that a link, a reload and the back button show the same view again. The query string
 * leaves out defaults. Parts that cannot be read are ignored, so that a mistyped link still shows something.
 */
import {
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
import { DEFAULT_VIEW, type Filters, MAX_BREAKDOWN, SORT_COLUMNS, type Sort, type View } from './view.js';

const UNGROUPED = 'none';
const DESCENDING = '-';

export function writeView(view: View): string {
  const { filters, groupBy, period, sort } = view;
  const query = new URLSearchParams();
  const put = (name: string, value: string | undefined, byDefault?: string) => {
    if (value !== undefined && value !== byDefault) query.set(name, value);
  };
  put('account', view.account);
  if ('preset' in period) {
    put('period', period.preset, writePreset(DEFAULT_VIEW.period));
  } else {
    put('from', formatTimestamp(period.from));
    put('to', formatTimestamp(period.to));
  }
  put('resolution', view.resolution);
  put('group', groupBy.join(',') || UNGROUPED, DEFAULT_VIEW.groupBy.join(','));
  put('workspace', filters.workspace);
  put('type', filters.resourceType);
  put('name', filters.resourceName);
  put('uuid', filters.resourceUuid);
  put('dimension', filters.billingDimension);
  put('measure', view.measure, DEFAULT_VIEW.measure);
  put('compare', view.compare ? 'previous' : undefined);
  put('show', view.asTable ? 'table' : undefined);
  put('sort', writeSort(sort), writeSort(DEFAULT_VIEW.sort));
  put('page', String(view.page), '1');
  return query.toString();
}

export function readView(text: string): View {
  const query = new URLSearchParams(text);
  const given = (name: string) => query.get(name) || undefined;
  return {
    account: given('account'),
    period: readPeriod(given('period'), given('from'), given('to')),
    resolution: known(given('resolution'), isResolution),
    groupBy: readGroupBy(given('group')),
    filters: readFilters(query),
    measure: given('measure') === 'usage' ? 'usage' : 'cost',
    compare: given('compare') === 'previous',
    asTable: given('show') === 'table',
    sort: readSort(given('sort')),
    page: readPage(given('page')),
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
  const filters = {
    workspace: query.get('workspace') || undefined,
    resourceType: known(query.get('type') ?? undefined, isResourceType),
    resourceName: query.get('name') || undefined,
    resourceUuid: query.get('uuid') ?? undefined,
    billingDimension: known(query.get('dimension') ?? undefined, isBillingDimension),
  };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined));
}

function writeSort({ column, descending }: Sort): string {
  return `${descending ? DESCENDING : ''}${column}`;
}

function readSort(text = ''): Sort {
  const descending = text.startsWith(DESCENDING);
  const column = SORT_COLUMNS.find((name) => name === text.slice(descending ? 1 : 0));
  return column ? { column, descending } : DEFAULT_VIEW.sort;
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
