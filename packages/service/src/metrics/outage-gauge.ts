import { Gauge, type Registry } from 'prom-client';

/** @param servers whether each is away, as the service sees it when it is asked; must not throw */
export function outageGauge(registry: Registry, servers: Readonly<Record<string, () => boolean>>): void {
  const gauge = new Gauge({
    name: 'meterline_outage',
    help: 'Whether a server that the service depends on is away (1) or answers (0).',
    labelNames: ['server'],
    registers: [registry],
    collect: () => {
      for (const [server, isAway] of Object.entries(servers)) gauge.set({ server }, isAway() ? 1 : 0);
    },
  });
}
