/** What is measured of events. */
import { REJECTION_REASONS } from '@meterline/catalog';
import { instruments } from '@meterline/service/metrics';
import type { Registry } from 'prom-client';
import type { CheckedEvents } from './events/check.js';
import { CLOUD_EVENT_REASON } from './events/check.js';

const WRITE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

export interface EventMetrics {
  /** Events were answered, and what was accepted of them is durable. */
  checked(events: CheckedEvents): void;
  /** A job with so many events is being written. @throws what the write does */
  write(events: number, written: Promise<void>): Promise<void>;
}

export function createEventMetrics(registry: Registry, bytesInFlight: () => number): EventMetrics {
  const { counter, histogram, readAtScrape } = instruments(registry);
  const accepted = counter(
    'meterline_collected_events_total',
    'Events that were accepted: they are durable in the queue.',
  );
  const rejected = counter(
    'meterline_collector_rejected_events_total',
    'Events that were rejected, by the code of the reason. They are not kept: the response says why.',
    'reason',
  );
  // Every series begins with 0: a series that begins with the first rejections has not increased, and an alert would not see them.
  for (const reason of [...REJECTION_REASONS, CLOUD_EVENT_REASON]) rejected.inc({ reason }, 0);
  const writes = histogram(
    'meterline_collector_write_duration_seconds',
    'Writes of jobs until they are durable; failed: the senders got 503.',
    WRITE_BUCKETS,
    'outcome',
  );
  const sizes = histogram(
    'meterline_collector_job_events',
    'Events in each job that was written, which may come from several requests.',
    SIZE_BUCKETS,
  );
  readAtScrape(
    'meterline_collector_in_flight_bytes',
    'Bytes in flight: of requests without a response yet, and of responses that are not read.',
    bytesInFlight,
  );
  return {
    checked: ({ accepted: events, results }) => {
      for (const { reason } of results) rejected.inc({ reason });
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
