/** Registers the metrics of every service: the process, ClickHouse statements, and outages of the servers that the service uses. */
import type { StatementObserver } from '@meterline/warehouse';
import { SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { inTime } from './waiting.js';

/** In seconds, from the duration of a point lookup to the request timeout of an insert. */
const STATEMENT_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** Well below the timeout of a scrape, which is usually ten seconds. */
const RESPONSE_TIMEOUT_MS = 1_500;

export function createRegistry(service: 'ingest' | 'query' | 'collector' | 'alerts'): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { gauge } = instruments(registry);
  gauge('meterline_service_info', 'Always 1: a process of this service is running.', 'service').set({ service }, 1);
  return registry;
}

type Measured = number | undefined | Promise<number | undefined>;

/** Returns functions that create metrics in a registry. The values of a label must be a fixed set, and never come from a caller. */
export function instruments(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
      new Gauge({ name, help, labelNames, registers }),
    histogram: <Label extends string = never>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
    /** Creates a gauge whose value is read at each scrape. The gauge is absent while `read` returns undefined. */
    readAtScrape: (name: string, help: string, read: () => Measured) =>
      new Gauge({
        name,
        help,
        registers,
        async collect() {
          const value = await read();
          this.remove();
          if (value !== undefined) this.set(value);
        },
      }),
  };
}

/** Measures and traces each ClickHouse statement. Statement names are constants of the warehouse package, so the label has few values. */
export function observeStatements(registry: Registry, tracer: Tracer): StatementObserver {
  const durations = instruments(registry).histogram(
    'meterline_clickhouse_statement_duration_seconds',
    'Duration of a ClickHouse statement, by its name and outcome: ok, refused, unanswered or cancelled.',
    STATEMENT_BUCKETS,
    'statement',
    'outcome',
  );
  return (statement) => {
    const end = durations.startTimer({ statement });
    const attributes = { 'db.system.name': 'clickhouse', 'db.operation.name': statement };
    const span = tracer.startSpan(statement, { kind: SpanKind.CLIENT, attributes });
    return (outcome, error) => {
      end({ outcome });
      if (outcome !== 'ok') {
        span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
        if (error instanceof Error) span.recordException(error);
      }
      span.end();
    };
  };
}

/** Checks each server at every scrape, because a server may fail between requests. A check that rejects or times out counts as an outage. */
export function outageGauge(registry: Registry, servers: Readonly<Record<string, () => Promise<boolean>>>): void {
  const gauge = new Gauge({
    name: 'meterline_outage',
    help: 'Whether a server that the service depends on is down (1) or responds (0).',
    labelNames: ['server'],
    registers: [registry],
    collect: async () => {
      const checks = Object.entries(servers).map(async ([server, check]) => {
        const isUp = await inTime(server, check(), RESPONSE_TIMEOUT_MS).catch(() => false);
        gauge.set({ server }, isUp ? 0 : 1);
      });
      await Promise.all(checks);
    },
  });
}
