/** What every service measures: its process, its statements, and whether its servers answer. */
import type { StatementObserver } from '@meterline/warehouse';
import { SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { inTime } from './waiting.js';

/** Seconds, from a point lookup to the request timeout of an insert. */
const STATEMENT_BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];
/** A scrape has some ten seconds. */
const RESPONSE_TIMEOUT_MS = 1_500;

/** The metrics of one service, with those of its process (`process_…`, `nodejs_…`) already in it. */
export function createRegistry(service: 'ingest' | 'query' | 'collector' | 'alerts'): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry });
  const { gauge } = instruments(registry);
  gauge('meterline_service_info', 'Always 1: a process of this service is running.', 'service').set({ service }, 1);
  return registry;
}

type Measured = number | undefined | Promise<number | undefined>;

/** What a registry gets its metrics from. Every label has a fixed set of values: nothing that a caller names becomes one. */
export function instruments(registry: Registry) {
  const registers = [registry];
  return {
    counter: <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
      new Counter({ name, help, labelNames, registers }),
    gauge: <Label extends string = never>(name: string, help: string, ...labelNames: Label[]) =>
      new Gauge({ name, help, labelNames, registers }),
    histogram: <Label extends string = never>(name: string, help: string, buckets: number[], ...labelNames: Label[]) =>
      new Histogram({ name, help, buckets, labelNames, registers }),
    /** A gauge that is read at each scrape; absent where that gives undefined. */
    readAtScrape: (name: string, help: string, read: () => Measured) =>
      new Gauge({
        ...{ name, help, registers },
        async collect() {
          const value = await read();
          this.remove();
          if (value !== undefined) this.set(value);
        },
      }),
  };
}

/**
 * Measures how long ClickHouse takes for each statement, with a span as a child of the one that is active where it runs. The names are
 * constants of the warehouse, so there are few.
 */
export function observeStatements(registry: Registry, tracer: Tracer): StatementObserver {
  const durations = instruments(registry).histogram(
    'meterline_clickhouse_statement_duration_seconds',
    'How long ClickHouse took for a statement, by its name and its outcome: ok, refused, unanswered or cancelled.',
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
        const isThere = await inTime(server, check(), RESPONSE_TIMEOUT_MS).catch(() => false);
        gauge.set({ server }, isThere ? 0 : 1);
      });
      await Promise.all(checks);
    },
  });
}
