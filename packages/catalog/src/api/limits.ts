/** How much a request may ask for, and the names of filters: without the schemas that check them, which a page does not need. */
import type { MetricsField } from '../group-by.js';

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

/** The parameter that leaves out values of a field. */
export const EXCLUDING_PARAMETER = {
  account: 'excludeAccount',
  workspace: 'excludeWorkspace',
  resourceType: 'excludeResourceType',
  resourceName: 'excludeResourceName',
  resourceUuid: 'excludeResourceUuid',
  billingDimension: 'excludeBillingDimension',
} as const satisfies Record<MetricsField, string>;
