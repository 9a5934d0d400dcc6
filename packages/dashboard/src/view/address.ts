/**
 * Stores the view in the address bar, so that links, reloads and the back button restore the view. Default values are omitted. Invalid
 * parameters are ignored, so that a mistyped link still shows a page.
 */
import {
  COMPARISONS,
  END_OF_TIME,
  ENTRY_FIELD,
  type EntryField,
  formatTimestamp,
  GROUP_BY_DIMENSIONS,
  isBillingDimension,
  isResourceType,
  MAX_GROUP_BY_DIMENSIONS,
  METRICS_DIMENSIONS,
  parseTimestamp,
  RESOLUTIONS,
} from '@meterline/catalog/plain';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useMemo, useSyncExternalStore } from 'react';
import { PRESETS } from '../period/period.js';
import type { Filters } from './view.js';
import { DEFAULT_VIEW, PAGE_SIZES, SORT_COLUMNS, sortOf, type View, withoutAccount } from './view.js';

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
const optionalChoice = <Value extends string>(name: string, values: readonly Value[]): Codec<Value | undefined> =>
  codec<Value | undefined>(name, (text) => values.find((value) => value === text));
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

const CODECS: { readonly [Part in keyof View]: Codec<View[Part]> } = {
  account: {
    read: (query) => (query.get('accounts') === 'all' ? ALL_ACCOUNTS : query.get('account') || undefined),
    write: (account) => {
      if (account === undefined) return [];
      return [account === ALL_ACCOUNTS ? ['accounts', 'all'] : ['account', account]];
    },
  },
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
  groupBy: codec<View['groupBy']>(
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
const PARTS = Object.keys(CODECS) as readonly (keyof View)[];

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
  if (field === 'resourceType') return isResourceType(value);
  if (field === 'billingDimension') return isBillingDimension(value);
  // An empty instance ID selects the usage that has no instance ID.
  return value !== '' || field === 'resourceUuid';
}

export function writeView(view: View): string {
  const write = <Part extends keyof View>(part: Part, of: View) => CODECS[part].write(of[part]);
  const pairs = PARTS.flatMap((part) => {
    const isDefault = String(write(part, view)) === String(write(part, DEFAULT_VIEW));
    return isDefault ? [] : write(part, view).map(([name, value]) => [name, value]);
  });
  return new URLSearchParams(pairs).toString();
}

export function readView(text: string): View {
  const query = new URLSearchParams(text);
  const view: { -readonly [Part in keyof View]: View[Part] } = { ...DEFAULT_VIEW };
  const read = <Part extends keyof View>(part: Part) => {
    view[part] = CODECS[part].read(query) ?? DEFAULT_VIEW[part];
  };
  for (const part of PARTS) read(part);
  if (view.account !== ALL_ACCOUNTS) view.groupBy = withoutAccount(view.groupBy);
  view.sort = sortOf(view);
  return view;
}

/** Reads a view without an account, and sets the account. A view of all accounts is grouped by account by default. */
export function readViewOf(account: string, text: string): View {
  const query = new URLSearchParams(text);
  for (const [name, value] of CODECS.account.write(account)) query.set(name, value);
  if (account === ALL_ACCOUNTS && !CODECS.groupBy.read(query)) query.set('group', 'account');
  return readView(String(query));
}

const CHANGED = 'meterline:view';

function subscribe(listener: () => void): () => void {
  for (const event of ['popstate', CHANGED]) window.addEventListener(event, listener);
  return () => {
    for (const event of ['popstate', CHANGED]) window.removeEventListener(event, listener);
  };
}

export function viewHref(view: View): string {
  const query = writeView(view);
  return `${location.pathname}${query && `?${query}`}${location.hash}`;
}

/** Shows another view, and adds a step to the browser's history. */
export function navigate(view: View): void {
  if (viewHref(view) === `${location.pathname}${location.search}${location.hash}`) return;
  history.pushState(null, '', viewHref(view));
  window.dispatchEvent(new Event(CHANGED));
}

export function replaceView(view: View): void {
  history.replaceState(null, '', viewHref(view));
  window.dispatchEvent(new Event(CHANGED));
}

/** Changes a part of the view in the address bar. The screen may still show the previous view. */
export function changeView(change: Partial<View>, show: (view: View) => void = navigate): void {
  show({ ...readView(location.search), ...change });
}

export function useView(): View {
  const query = useSyncExternalStore(subscribe, () => location.search);
  return useMemo(() => readView(query), [query]);
}
