/** What is measured of events. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { ByteBudget } from './byte-budget.js';
import type { CheckedEvents } from './events/check.js';

const WRITE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

export interface EventMetrics {
  /** Events were answered. @param isTrial whether none of them was to be kept */
  checked(events: CheckedEvents, isTrial: boolean): void;
  /** A job with so many events is being written. @throws what the write does */
  write(events: number, written: Promise<void>): Promise<void>;
}

export function createEventMetrics(registry: Registry): EventMetrics {
  const accepted = new Counter({
    name: 'meterline_collected_events_total',
    help: 'Events that were accepted: they are durable in the queue.',
    registers: [registry],
  });
  const rejected = new Counter({
    name: 'meterline_collector_rejected_events_total',
    help: 'Events that were rejected, by the code of the reason. They are not kept: the response says why.',
    labelNames: ['reason'],
    registers: [registry],
  });
  const writes = new Histogram({
    name: 'meterline_collector_write_duration_seconds',
    help: 'Writes of jobs until they are durable; failed: the senders got 503.',
    labelNames: ['outcome'],
    buckets: WRITE_BUCKETS,
    registers: [registry],
  });
  const sizes = new Histogram({
    name: 'meterline_collector_job_events',
    help: 'Events in each job that was written, which may come from several requests.',
    buckets: SIZE_BUCKETS,
    registers: [registry],
  });
  return {
    checked: ({ accepted: events, results }, isTrial) => {
      if (isTrial) return;
      for (const { reason } of results) if (reason) rejected.inc({ reason });
      accepted.inc(events.length);
    },
    write: async (events, written) => {
      const end = writes.startTimer();
      sizes.observe(events);
      const outcome = await written.then(
        () => 'ok',
        () => 'failed',
      );
      end({ outcome });
      return written;
    },
  };
}

export function bytesGauge(registry: Registry, budget: ByteBudget): void {
  new Gauge({
    name: 'meterline_collector_in_flight_bytes',
    help: 'Bytes in flight: of requests without a response yet, and of responses that are not read.',
    registers: [registry],
    collect() {
      this.set(budget.total);
    },
  });
}
