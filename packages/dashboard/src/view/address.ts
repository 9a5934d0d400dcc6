/**
 * Stores the view in the address bar, so that links, reloads and the back button restore the view. Default values are omitted. Invalid
 * parameters are ignored, so that a mistyped link still shows a page.
 */
import { DEFAULT_VIEW_QUERY, readViewQuery, writeViewQuery } from '@meterline/catalog/plain';
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

/** Reads a view without an account, and sets the account. A view of all accounts is grouped by account by default. */
export function readViewOf(account: string, text: string): View {
  const query = new URLSearchParams(text);
  query.set(...accountParameter(account));
  const isGrouped = readViewQuery(query).groupBy !== DEFAULT_VIEW_QUERY.groupBy;
  if (account === ALL_ACCOUNTS && !isGrouped) query.set('group', 'account');
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

/** Changes a part of the view. Starts from the view in the address bar, because the screen may still show the previous view. */
export function changeView(change: Partial<View>, show: (view: View) => void = navigate): void {
  show({ ...readView(location.search), ...change });
}

export function useView(): View {
  const query = useSyncExternalStore(subscribe, () => location.search);
  return useMemo(() => readView(query), [query]);
}
