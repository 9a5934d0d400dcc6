/** The view in the address bar: back and forward go through the views as through pages. */
import { useCallback, useMemo, useSyncExternalStore } from 'react';
import type { View } from './view.js';
import { readView, writeView } from './view-query.js';

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

export interface ViewNavigation {
  readonly view: View;
  readonly navigate: (view: View) => void;
  /** Without a step for the back button: what the page itself completes. */
  readonly complete: (view: View) => void;
}

export function useView(): ViewNavigation {
  const query = useSyncExternalStore(subscribe, () => location.search);
  const view = useMemo(() => readView(query), [query]);
  const navigate = useCallback((next: View) => {
    if (viewHref(next) === `${location.pathname}${location.search}`) return;
    history.pushState(null, '', viewHref(next));
    window.dispatchEvent(new Event(CHANGED));
  }, []);
  const complete = useCallback((next: View) => {
    history.replaceState(null, '', viewHref(next));
    window.dispatchEvent(new Event(CHANGED));
  }, []);
  return { view, navigate, complete };
}
