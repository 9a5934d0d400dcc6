/** What sealing and repairing leave, because ClickHouse's limits do not let it be computed. */
import { formatTimestamp } from '@meterline/catalog';
import type { Cell } from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';

interface Where {
  readonly shard: number | undefined;
  readonly metrics: Pick<IngestMetrics, 'cellsTooLarge'>;
  readonly log: Logger;
}

/** One line for all of a step, with the first of them. */
export function tellTooLarge({ shard, metrics, log }: Where, cells: readonly Cell[]): void {
  const [first] = cells;
  if (!first) return;
  metrics.cellsTooLarge.inc(cells.length);
  const { accountId: account, bucket } = first;
  log.warn(
    { event: 'cells_too_large', shard, cells: cells.length, first: { account, bucket: formatTimestamp(bucket) } },
    'cells need more memory or time than a statement may take; their hours are answered from the events',
  );
}
