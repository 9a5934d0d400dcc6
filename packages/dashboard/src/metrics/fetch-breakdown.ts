import type { MeterlineClient, MetricsQuery } from '@meterline/client';
import type { BreakdownSource } from '../breakdown/breakdown.js';

/** Events may arrive between two answers; then both are asked for again. */
const ATTEMPTS = 3;

/**
 * The first page of groups, and the whole if there are more pages: a first page alone cannot tell what the rest of each
 * bucket is. Both are of the same moment, as far as the traffic lets them be.
 */
export async function fetchBreakdown(
  client: MeterlineClient,
  account: string,
  query: MetricsQuery,
  whole: MetricsQuery,
  signal: AbortSignal,
): Promise<BreakdownSource> {
  for (let attempt = 1; ; attempt += 1) {
    const first = await client.metrics(account, query, { signal });
    if (!first.meta.hasMore) return { first, whole: undefined };
    const everything = await client.metrics(account, whole, { signal });
    const agree = everything.summary.totalCost === first.summary.totalCost;
    if (agree || attempt === ATTEMPTS) return { first, whole: everything };
  }
}
