/** The queue between runtimes and the ingest worker, and what a job on it may hold. Source: DESIGN section 3. */
import { type Checked, rejected } from './rejection.js';

export const QUEUE_NAME = 'usage-events';
/** BullMQ's own default. */
export const QUEUE_PREFIX = 'bull';
export const MAX_EVENTS_PER_JOB = 5_000;

/**
 * The events of a job, still unchecked: its data is one event, or `{ "events": [ … ] }` with 1 to 5,000.
 * A job that is neither is refused whole.
 */
export function eventsOfJob(data: unknown): Checked<readonly unknown[]> {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return rejected('job_not_an_object', 'the data of a job must be one event or { "events": [ … ] }');
  }
  if (!('events' in data)) return { ok: true, value: [data] };
  const { events, ...others } = data;
  const strays = Object.keys(others);
  if (strays.length > 0) {
    return rejected('job_invalid', `beside "events" a job holds no other field, but this one has ${strays.join(', ')}`);
  }
  if (!Array.isArray(events)) return rejected('job_invalid', 'the field "events" of a job must be an array of events');
  if (events.length === 0) return rejected('job_empty', `a job must hold 1 to ${MAX_EVENTS_PER_JOB} events`);
  if (events.length > MAX_EVENTS_PER_JOB) {
    return rejected(
      'job_too_large',
      `a job may hold at most ${MAX_EVENTS_PER_JOB} events, this one has ${events.length}; split it`,
    );
  }
  return { ok: true, value: events };
}
