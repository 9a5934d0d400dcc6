import { collectDefaultMetrics, Gauge, Registry } from 'prom-client';

/** The metrics of one service, with those of its process (`process_…`, `nodejs_…`) already in it. */
export function createRegistry(service: 'ingest' | 'query'): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const info = new Gauge({
    name: 'meterline_service_info',
    help: 'Always 1: a process of this service is there.',
    labelNames: ['service'],
    registers: [registry],
  });
  info.set({ service }, 1);
  return registry;
}
