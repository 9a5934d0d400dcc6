/** What is measured of events. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { BytesUnderWay } from './bytes-under-way.js';
import type { CheckedEvents } from './events/check.js';

const WRITE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

export interface EventMetrics {
  /** Events were answered. @param isTrial whether none of them was to be kept */
  checked(events: CheckedEvents, isTrial: boolean): void;
  /** A job with so many events is being written. @returns to be called at its end */
  write(events: number): (outcome: 'ok' | 'failed') => void;
}

export function createEventMetrics(registry: Registry): EventMetrics {
  const accepted = new Counter({
    name: 'meterline_collected_events_total',
    help: 'Events that were accepted: they are durable in the queue.',
    registers: [registry],
  });
  const refused = new Counter({
    name: 'meterline_collector_refused_events_total',
    help: 'Events that were refused, by the code of the reason. They are not kept.',
    labelNames: ['reason'],
    registers: [registry],
  });
  const writes = new Histogram({
    name: 'meterline_collector_write_duration_seconds',
    help: 'Writes of jobs to the queue until they are durable.',
    labelNames: ['outcome'],
    buckets: WRITE_BUCKETS,
    registers: [registry],
  });
  const sizes = new Histogram({
    name: 'meterline_collector_job_events',
    help: 'Events in each job that was written: those of several requests.',
    buckets: SIZE_BUCKETS,
    registers: [registry],
  });
  return {
    checked: (events, isTrial) => {
      if (isTrial) return;
      for (const [reason, count] of events.results.refused) refused.inc({ reason }, count);
      accepted.inc(events.accepted.count);
    },
    write: (events) => {
      const end = writes.startTimer();
      sizes.observe(events);
      return (outcome) => void end({ outcome });
    },
  };
}

export function bytesGauge(registry: Registry, bytes: BytesUnderWay): void {
  new Gauge({
    name: 'meterline_collector_bytes_under_way',
    help: 'Bytes of requests that are not answered yet, and of answers that are not read.',
    registers: [registry],
    collect() {
      this.set(bytes.total);
    },
  });
}
