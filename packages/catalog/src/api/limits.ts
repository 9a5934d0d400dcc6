/** How much a request may ask for. Without a schema, so that a page that needs a limit does not load what checks parameters. */

export const MAX_METRICS_PAGE = 100;
/** Of all filters of a request together. */
export const MAX_FILTER_VALUES = 100;
/**
 * Of one page, in all its series: groups times buckets. A point takes some 60 to 100 bytes, so a page has 2 MB at most. Every
 * window with a capped resolution has its 100 groups: 7 days have 169 hours at most.
 */
export const MAX_PAGE_POINTS = 20_000;
export const DEFAULT_EVENTS_PAGE = 100;
export const MAX_EVENTS_PAGE = 1_000;
/** Of the lists of accounts and of keys. */
export const DEFAULT_LIST_PAGE = 50;
export const MAX_LIST_PAGE = 200;
