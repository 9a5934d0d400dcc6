/** From a rejection's payload to what goes into the queue again, with fields changed on request. Pure. */
import {
  exactDecimal,
  isJobRejection,
  MAX_EVENTS_PER_JOB,
  MAX_JOB_VALUES,
  parseEventJson,
  parseJson,
  payloadOf,
  referencedPosition,
} from '@meterline/catalog';
import { countValues } from '@meterline/service/job';
import type { OpenRejection } from '@meterline/warehouse';

export type Resendable =
  | { readonly kind: 'event'; readonly event: unknown }
  /** The data of each job. */
  | { readonly kind: 'jobs'; readonly jobs: readonly unknown[] }
  | { readonly kind: 'unsendable'; readonly why: string };

/** Changes to the fields of an event before it is sent again. */
export interface Edits {
  readonly set: ReadonlyMap<string, unknown>;
  readonly unset: ReadonlySet<string>;
}

/**
 * @param text `field=value`; a value that is JSON is taken as such, any other as a string. A number that a double would round becomes
 *   decimal text. Undefined: it is no edit
 */
export function parseEdit(text: string): { readonly field: string; readonly value: unknown } | undefined {
  const [, field, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (field === undefined || value === undefined) return undefined;
  const parsed = parseJson(value);
  const exact = typeof parsed === 'number' ? exactDecimal(value) : undefined;
  return { field, value: parsed === undefined ? value : (exact ?? parsed) };
}

export const OVERSIZED =
  'it is too large for one job; "meterline rejected show ID --payload" prints its data, and "meterline emit" sends events in jobs of the right size';

type Rejected = Pick<OpenRejection, 'reason' | 'position'>;

/**
 * @param payload the payload of the rejection
 * @param referenced the payload of the rejection that this one refers to, if it does
 */
export function resendable(
  rejection: Rejected,
  payload: string,
  referenced: string | undefined,
  edits: Edits,
): Resendable {
  const content = parseEventJson(payload);
  if (content === undefined) return unsendable('its payload is not JSON');
  const whole = isJobRejection(rejection.reason);
  const original = whole ? content : eventOf(rejection, payload, content, referenced);
  if (original === undefined) return unsendable('the payload that it refers to is gone');
  const edited = editedContent(original, edits);
  if (edited === undefined) return unsendable('it is not an object, so it has no fields to edit');
  // Read back from its text: what cannot be written, and Infinity, must not reach the queue's own JSON.stringify.
  const text = payloadOf(edited);
  if (text === undefined) return unsendable('it is nested too deeply to be sent; --unset the field that is');
  const sendable: unknown = JSON.parse(text);
  return whole ? { kind: 'jobs', jobs: jobsOf(sendable) } : { kind: 'event', event: sendable };
}

/**
 * An event that was nested too deeply to be kept alone is kept with its whole job, the first such event of a job with
 * the job and others with a reference to it. What cannot be written here either, and has events, is such a job: an event
 * of its own with that content could not have been kept alone.
 */
function eventOf({ position }: Rejected, payload: string, content: unknown, referenced: string | undefined): unknown {
  if (referencedPosition(payload) !== undefined) {
    return referenced === undefined ? undefined : eventAt(parseEventJson(referenced), position);
  }
  if (payloadOf(content) !== undefined) return content;
  return eventAt(content, position) ?? content;
}

function eventAt(job: unknown, position: number): unknown {
  const events = typeof job === 'object' && job !== null && 'events' in job ? job.events : undefined;
  return Array.isArray(events) ? events[position] : undefined;
}

/** Undefined when there are edits but no fields. */
function editedContent(content: unknown, edits: Edits): unknown {
  if (edits.set.size === 0 && edits.unset.size === 0) return content;
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return undefined;
  return applyEdits(content, edits);
}

export function applyEdits(event: object, { set, unset }: Edits): object {
  const kept = Object.entries(event).filter(([field]) => !unset.has(field));
  return Object.fromEntries([...kept, ...set]);
}

/** Jobs of these events that have no more values than a job may: one that has more is rejected with all its events. */
export function jobsOfEvents(events: readonly unknown[]): { readonly events: readonly unknown[] }[] {
  const jobs: { events: unknown[] }[] = [];
  let values = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const own = 1 + countValues(JSON.stringify(event), MAX_JOB_VALUES);
    values += own;
    // The job itself has two.
    if (values > MAX_JOB_VALUES - 2) {
      jobs.push({ events: [] });
      values = own;
    }
    jobs.at(-1)?.events.push(event);
  }
  return jobs;
}

/** A job with too many events is split, as its rejection asks for. */
function jobsOf(data: unknown): unknown[] {
  if (typeof data !== 'object' || data === null || !('events' in data) || !Array.isArray(data.events)) return [data];
  const { events } = data;
  if (events.length <= MAX_EVENTS_PER_JOB) return [data];
  const jobs: unknown[] = [];
  for (let start = 0; start < events.length; start += MAX_EVENTS_PER_JOB) {
    jobs.push({ ...data, events: events.slice(start, start + MAX_EVENTS_PER_JOB) });
  }
  return jobs;
}

function unsendable(why: string): Resendable {
  return { kind: 'unsendable', why };
}
