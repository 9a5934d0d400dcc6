/** A worker stops in the middle of a repair, for good or for a while. */
import { MS_PER_HOUR } from '@meterline/catalog';
import { createWarehouse, raiseWatermarks } from '@meterline/warehouse';
import type { Fault } from './fault.js';
import type { LinkTreatment } from './tcp-proxy.js';
import { holdsWithin, pause } from './waiting.js';

const REPAIRING_WITHIN_MS = 60_000;
/** The statement that computes the hours' cells, and a row that removes a mark. */
const HELD: readonly LinkTreatment[] = [
  { kind: 'hold', text: 'INSERT INTO usage_hourly (' },
  { kind: 'hold', text: '"sign":-1' },
];
/** Others repair marks that are a minute old. */
const LONGER_THAN_OTHERS_WAIT_MS = 64_000;

export const repairerStopped: Fault = {
  name: 'repairer-stopped',
  injects:
    'SIGKILL or SIGSTOP of a worker that repairs, before it writes cells or before it removes marks, while others go on; then SIGCONT',
  workers: 1,
  proxied: 'clickhouse',
  weight: 8,
  strike: async ({ site, workers, stream, random, brief, signal, complain }) => {
    const direct = { CLICKHOUSE_URL: site.database.url };
    const warehouse = createWarehouse(site.database);
    try {
      await workers.kill(workers.running);
      // As a sealer does that dies after it: the rest of the stream is late.
      const end = Math.ceil(Date.parse(stream.window.endTime) / MS_PER_HOUR) * MS_PER_HOUR;
      await raiseWatermarks(warehouse, 'hourly', { sealingUntil: end });
      site.clickhouseLink.treat(random.pick(HELD));
      const [repairer] = await workers.start(1, { SEAL_EVERY_MS: '0' });
      const isRepairing = await holdsWithin(REPAIRING_WITHIN_MS, signal, () => site.clickhouseLink.strikes > 0);
      if (!repairer || !isRepairing) return complain('no worker was stopped in the middle of a repair');
      if (random.chance(0.5)) {
        await workers.kill([repairer]);
        site.clickhouseLink.treat({ kind: 'pass' });
        await workers.start(1, direct);
        return;
      }
      process.kill(repairer.pid, 'SIGSTOP');
      try {
        site.clickhouseLink.treat({ kind: 'pass' });
        await workers.start(1, direct);
        await pause(brief || random.chance(0.7) ? random.integer(500, 3_000) : LONGER_THAN_OTHERS_WAIT_MS, signal);
      } finally {
        process.kill(repairer.pid, 'SIGCONT');
      }
    } finally {
      site.clickhouseLink.treat({ kind: 'pass' });
      await warehouse.close();
    }
  },
};
