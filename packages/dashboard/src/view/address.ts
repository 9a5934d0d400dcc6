/**
 * Stores the view in the address bar, so that links, reloads and the back button restore the view. Default values are omitted. Invalid
 * parameters are ignored, so that a mistyped link still shows a page. The page names them until the view changes.
 */
import { DEFAULT_VIEW_QUERY, ignoredViewParameter, readViewQuery, writeViewQuery } from '@meterline/catalog/plain';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useMemo, useSyncExternalStore } from 'react';
import { sortOf, type View, withoutAccount } from './view.js';

function accountIn(query: URLSearchParams): string | undefined {
  return query.get('accounts') === 'all' ? ALL_ACCOUNTS : query.get('account') || undefined;
}

function accountParameter(account: string): [name: string, value: string] {
  return account === ALL_ACCOUNTS ? ['accounts', 'all'] : ['account', account];
}

export function writeView({ account, ...query }: View): string {
  const pairs = [...(account === undefined ? [] : [accountParameter(account)]), ...writeViewQuery(query)];
  return new URLSearchParams(pairs.map(([name, value]) => [name, value])).toString();
}

export function readView(text: string): View {
  const query = new URLSearchParams(text);
  const view = { account: accountIn(query), ...readViewQuery(query) };
  const groupBy = view.account === ALL_ACCOUNTS ? view.groupBy : withoutAccount(view.groupBy);
  return { ...view, groupBy, sort: sortOf(view) };
}

/** Returns the first parameter of the address that no view has, such as `period=9d`, or undefined if there is none. */
export function ignoredParameter(text: string): string | undefined {
  const query = new URLSearchParams(text);
  query.delete('account');
  if (query.get('accounts') === 'all') query.delete('accounts');
  return ignoredViewParameter(query);
}

/** Sets the account of a view. A view of all accounts is grouped by account by default. */
function withAccount(account: string, text: string): string {
  const query = new URLSearchParams(text);
  query.set(...accountParameter(account));
  const isGrouped = readViewQuery(query).groupBy !== DEFAULT_VIEW_QUERY.groupBy;
  if (account === ALL_ACCOUNTS && !isGrouped) query.set('group', 'account');
  return String(query);
}

export function readViewOf(account: string, text: string): View {
  return readView(withAccount(account, text));
}

const CHANGED = 'meterline:view';

function subscribe(listener: () => void): () => void {
  for (const event of ['popstate', CHANGED]) window.addEventListener(event, listener);
  return () => {
    for (const event of ['popstate', CHANGED]) window.removeEventListener(event, listener);
  };
}

function hrefOf(query: string): string {
  return `${location.pathname}${query && `?${query}`}${location.hash}`;
}

export function viewHref(view: View): string {
  return hrefOf(writeView(view));
}

/** Shows another view, and adds a step to the browser's history. */
export function navigate(view: View): void {
  if (viewHref(view) === `${location.pathname}${location.search}${location.hash}`) return;
  history.pushState(null, '', viewHref(view));
  window.dispatchEvent(new Event(CHANGED));
}

export function replaceView(view: View): void {
  replaceQuery(writeView(view));
}

function replaceQuery(query: string): void {
  history.replaceState(null, '', hrefOf(query));
  window.dispatchEvent(new Event(CHANGED));
}

/** Adds the account to the address. Keeps a parameter that no view has, so that the page can name it. */
export function addAccount(account: string): void {
  const query = withAccount(account, location.search);
  replaceQuery(ignoredParameter(query) === undefined ? writeView(readView(query)) : query);
}

/** Changes a part of the view. Starts from the view in the address bar, because the screen may still show the previous view. */
export function changeView(change: Partial<View>, show: (view: View) => void = navigate): void {
  show({ ...readView(location.search), ...change });
}

export function useView(): View {
  const query = useSyncExternalStore(subscribe, () => location.search);
  return useMemo(() => readView(query), [query]);
}
