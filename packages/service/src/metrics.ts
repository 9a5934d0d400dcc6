/** What every service measures: its process, its statements, and whether its servers answer. */
import type { StatementObserver } from '@meterline/warehouse';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { inTime } from './waiting.js';

/** Seconds, from a point lookup to the request timeout of an insert. */
const STATEMENT_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** A scrape has some ten seconds. */
const ANSWER_TIMEOUT_MS = 1_500;

/** The metrics of one service, with those of its process (`process_…`, `nodejs_…`) already in it. */
export function createRegistry(service: 'ingest' | 'query' | 'collector' | 'alerts'): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const info = new Gauge({
    name: 'meterline_service_info',
    help: 'Always 1: a process of this service is running.',
    labelNames: ['service'],
    registers: [registry],
  });
  info.set({ service }, 1);
  return registry;
}

/** Measures how long ClickHouse takes for each statement. The names are constants of the warehouse, so there are few. */
export function statementMetrics(registry: Registry): StatementObserver {
  const durations = new Histogram({
    name: 'meterline_clickhouse_statement_duration_seconds',
    help: 'How long ClickHouse took for a statement, by its name and its outcome: ok, refused, unanswered or cancelled.',
    labelNames: ['statement', 'outcome'],
    buckets: STATEMENT_BUCKETS,
    registers: [registry],
  });
  return (statement) => {
    const end = durations.startTimer({ statement });
    return (outcome) => void end({ outcome });
  };
}

/**
 * Asks each server at every scrape, because a server may go away, hang or come back while nobody else asks it anything.
 * @param servers for each a check whether it is there; one that rejects or takes long counts as away
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
