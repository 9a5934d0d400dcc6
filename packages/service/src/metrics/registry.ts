import { collectDefaultMetrics, Registry } from 'prom-client';

/** The metrics of one service, with those of its process (`process_…`, `nodejs_…`) already in it. */
export function createRegistry(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  return registry;
}
