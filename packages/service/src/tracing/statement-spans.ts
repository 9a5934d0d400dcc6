import type { StatementObserver } from '@meterline/warehouse';
import { SpanKind, SpanStatusCode, type Tracer } from '@opentelemetry/api';

/** A span for every statement, below whatever span is active where it runs. */
export function statementSpans(tracer: Tracer): StatementObserver {
  return (statement) => {
    const span = tracer.startSpan(statement, {
      kind: SpanKind.CLIENT,
      attributes: { 'db.system.name': 'clickhouse', 'db.operation.name': statement },
    });
    return (outcome, error) => {
      if (outcome !== 'ok') {
        span.setStatus({ code: SpanStatusCode.ERROR, message: outcome });
        if (error instanceof Error) span.recordException(error);
      }
      span.end();
    };
  };
}

/** Several watch the same statements. */
export function eachObserver(...observers: readonly StatementObserver[]): StatementObserver {
  return (statement) => {
    const ends = observers.map((observe) => observe(statement));
    return (outcome, error) => {
      for (const end of ends) end(outcome, error);
    };
  };
}
