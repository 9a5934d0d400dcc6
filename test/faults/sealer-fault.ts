/** A worker that seals stops in the middle of it, for longer than its lock lasts in some rounds. */
import type { Fault } from './fault.js';
import type { LinkTreatment } from './tcp-proxy.js';
import { holdsWithin, pause } from './waiting.js';

const SEALING_WITHIN_MS = 60_000;
/** The statement between the two watermarks. */
const HELD: LinkTreatment = { kind: 'hold', text: 'INSERT INTO usage_hourly (' };
/** A sealer holds its lock for 15 s without renewing it; another looks for such locks every 5 s. */
const LONGER_THAN_THE_LOCK_MS = 21_000;

export const sealerFrozen: Fault = {
  name: 'sealer-frozen',
  injects:
    'SIGSTOP of the worker that seals between its two watermarks, while others store into the same hours; then SIGCONT',
  workers: 1,
  proxied: 'clickhouse',
  weight: 8,
  strike: async ({ site, workers, stream, random, brief, signal, complain }) => {
    const direct = { CLICKHOUSE_URL: site.database.url };
    try {
      await workers.kill(workers.running);
      await workers.start(1, { ...direct, SEAL_EVERY_MS: '0' });
      site.clickhouseLink.treat(HELD);
      // All of the stream is due, so that there is something to seal.
      const SEAL_DELAY_MS = String(Date.now() - Date.parse(stream.window.endTime));
      const [sealer] = await workers.start(1, { SEAL_DELAY_MS, REPAIR_EVERY_MS: '0' });
      const isBetween = await holdsWithin(SEALING_WITHIN_MS, signal, () => site.clickhouseLink.strikes > 0);
      if (!sealer || !isBetween) return complain('no worker was stopped in the middle of sealing');
      process.kill(sealer.pid, 'SIGSTOP');
      try {
        site.clickhouseLink.treat({ kind: 'pass' });
        await workers.start(1, { ...direct, SEAL_DELAY_MS });
        await pause(brief || random.chance(0.7) ? random.integer(500, 3_000) : LONGER_THAN_THE_LOCK_MS, signal);
      } finally {
        process.kill(sealer.pid, 'SIGCONT');
      }
    } finally {
      site.clickhouseLink.treat({ kind: 'pass' });
    }
  },
};
