/** Defines the metrics of received events and of writes to the queue. */
import { REJECTION_REASONS } from '@meterline/catalog';
import { instruments } from '@meterline/service/metrics';
import type { Registry } from 'prom-client';
import type { CheckedEvents } from './events/check.js';
import { CLOUD_EVENT_REASON } from './events/check.js';

const WRITE_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5];
const SIZE_BUCKETS = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

export interface EventMetrics {
  /** Counts the events of a request. Called after the accepted events are durable. */
  checked(events: CheckedEvents): void;
  /** Measures the write of a job with this number of events. @throws the error of the write */
  write(events: number, written: Promise<void>): Promise<void>;
}

export function createEventMetrics(registry: Registry, bytesInFlight: () => number): EventMetrics {
  const { counter, histogram, readAtScrape } = instruments(registry);
  const accepted = counter('meterline_collected_events_total', 'Accepted events, which are durable in the queue.');
  const rejected = counter(
    'meterline_collector_rejected_events_total',
    'Rejected events by reason. They are not stored; the response has the details.',
    'reason',
  );
  // Each series starts at 0. Otherwise an alert on an increase would miss the first rejections.
  for (const reason of [...REJECTION_REASONS, CLOUD_EVENT_REASON]) rejected.inc({ reason }, 0);
  const writes = histogram(
    'meterline_collector_write_duration_seconds',
    'Time until a job is durable, by outcome. After a failed write, senders get 503.',
    WRITE_BUCKETS,
    'outcome',
  );
  const sizes = histogram(
    'meterline_collector_job_events',
    'Events per written job. A job may contain the events of several requests.',
    SIZE_BUCKETS,
  );
  readAtScrape(
    'meterline_collector_in_flight_bytes',
    'Bytes of requests without a response, and of responses that clients have not read yet.',
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
