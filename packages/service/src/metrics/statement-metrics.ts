import type { StatementObserver } from '@meterline/warehouse';
import { Histogram, type Registry } from 'prom-client';

/** From a point lookup to the request timeout of an insert. */
const BUCKETS = [0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60];

/** How long ClickHouse takes for each statement. The names are constants of the warehouse, so there are few. */
export class StatementMetrics {
  readonly #durations: Histogram<'statement' | 'outcome'>;

  constructor(registry: Registry) {
    this.#durations = new Histogram({
      name: 'meterline_clickhouse_statement_duration_seconds',
      help: 'How long ClickHouse took for a statement, by its name and its outcome: ok, refused or unanswered.',
      labelNames: ['statement', 'outcome'],
      buckets: BUCKETS,
      registers: [registry],
    });
  }

  readonly observe: StatementObserver = (statement) => {
    const started = performance.now();
    return (outcome) => {
      this.#durations.observe({ statement, outcome }, (performance.now() - started) / 1000);
    };
  };
}
