/** What can be asked of the API, as programs hold it. Source: the API specification, section "Billing API". */
import type { BillingDimension, ResourceType } from '../dimensions.js';
import type { GroupByDimension } from '../group-by.js';
import type { Resolution } from '../resolution.js';

/** RFC 3339 in UTC, or the same as a Date. */
export type Instant = string | Date;

/** Half-open: startTime is inside, endTime is not. */
export interface WindowQuery {
  readonly startTime: Instant;
  readonly endTime: Instant;
}

export interface MetricsQuery extends WindowQuery {
  /** Left out, the API chooses by the length of the window. */
  readonly resolution?: Resolution | undefined;
  /** Up to three; left out, one entry for everything. */
  readonly groupBy?: readonly GroupByDimension[] | undefined;
  /** Account admins only. */
  readonly workspace?: string | undefined;
  readonly resourceType?: ResourceType | undefined;
  readonly resourceName?: string | undefined;
  /** Empty for what has no instance id. */
  readonly resourceUuid?: string | undefined;
  readonly billingDimension?: BillingDimension | undefined;
  /** Groups on a page, 1 to 100. */
  readonly limit?: number | undefined;
  /** `meta.nextCursor` of the page before; left out or empty for the first. */
  readonly cursor?: string | undefined;
}
