import type { EpochMs } from '@meterline/catalog';

const MINUTE_MS = 60_000;

/** To the minute, so that what is asked twice within one is asked once. */
export function currentMinute(): EpochMs {
  const now = Date.now();
  return now - (now % MINUTE_MS);
}
