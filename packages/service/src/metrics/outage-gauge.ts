import { Gauge, type Registry } from 'prom-client';
import { inTime } from '../in-time.js';

/** A scrape has some ten seconds. */
const ANSWER_TIMEOUT_MS = 1_500;

/**
 * Asked at every scrape, because a server may go away, hang or come back while nobody else asks it anything.
 * @param servers for each whether it is there; to reject or to take long says that it is away
 */
export function outageGauge(registry: Registry, servers: Readonly<Record<string, () => Promise<boolean>>>): void {
  const gauge = new Gauge({
    name: 'meterline_outage',
    help: 'Whether a server that the service depends on is away (1) or answers (0).',
    labelNames: ['server'],
    registers: [registry],
    collect: async () => {
      const checks = Object.entries(servers).map(async ([server, check]) => {
        const isThere = await inTime(server, check(), ANSWER_TIMEOUT_MS).catch(() => false);
        gauge.set({ server }, isThere ? 0 : 1);
      });
      await Promise.all(checks);
    },
  });
}
