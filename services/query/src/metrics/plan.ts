/** From a request to the question that the warehouse answers, and from its answer to a page. */
import type { GroupRank, MetricsAnswer, MetricsGroup, MetricsQuestion } from '@meterline/warehouse';
import type { MetricsRequest } from '../contracts/metrics-parameters.js';

/** Asks for one group more than the page holds: whether it comes tells whether there is another page. */
export function planMetrics(
  accountId: string,
  { window, resolution, groupBy, filters, limit }: MetricsRequest,
  after: GroupRank | undefined,
): MetricsQuestion {
  return { accountId, window, resolution, groupBy, filters, limit: limit + 1, ...(after && { after }) };
}

export interface MetricsPage {
  readonly groups: readonly MetricsGroup[];
  /** Over the whole window, on every page. */
  readonly totals: MetricsAnswer['totals'];
  /** The group after which the next page begins; undefined on the last page. */
  readonly lastBeforeMore: MetricsGroup | undefined;
}

export function pageOf({ groups, totals }: MetricsAnswer, { limit }: MetricsRequest): MetricsPage {
  const hasMore = groups.length > limit;
  return { groups: groups.slice(0, limit), totals, lastBeforeMore: hasMore ? groups[limit - 1] : undefined };
}
