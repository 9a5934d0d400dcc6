/**
 * Which events are too old to be accepted. A worker that has not heard of a bound yet stores events that others reject already;
 * what happens to those is decided after they are stored: see packages/warehouse/src/retention/bounds.ts.
 */
import { type EpochMs, formatTimestamp } from '@meterline/catalog';
import { readRetentionBounds, type Warehouse } from '@meterline/warehouse';
import type { Logger } from 'pino';
import type { IngestMetrics } from './metrics.js';

/** How long it takes until every worker knows of a bound. */
const REFRESH_MS = 5_000;

export interface ClosedMonths {
  /** Events before this instant are rejected. */
  before(): EpochMs;
  stop(): void;
}

/** @returns when the bound of this moment is known; it is read again every few seconds. @throws when ClickHouse does not tell */
export async function followClosedMonths(
  warehouse: Warehouse,
  metrics: IngestMetrics,
  log: Logger,
): Promise<ClosedMonths> {
  let before: EpochMs = 0;
  const refresh = async () => {
    const { closedBefore } = await readRetentionBounds(warehouse);
    metrics.closedBefore.set(closedBefore / 1000);
    if (closedBefore === before) return;
    before = closedBefore;
    const text = formatTimestamp(before);
    log.info({ event: 'months_closed', before: text }, 'events before this time are rejected from now on');
  };
  await refresh();
  // The store reports an outage.
  const refreshing = setInterval(() => refresh().catch(() => undefined), REFRESH_MS);
  return { before: () => before, stop: () => clearInterval(refreshing) };
}
