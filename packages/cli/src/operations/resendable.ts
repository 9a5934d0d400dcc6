/** From a rejection's payload to what goes into the queue again, with fields changed on request. Pure. */
import {
  exactDecimal,
  isJobRejection,
  MAX_EVENTS_PER_JOB,
  MAX_JOB_VALUES,
  parseEventJson,
  parseJson,
  payloadOf,
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

const TOO_DEEP =
  'it is nested too deeply to be sent; --unset the field that is, or print a job with "meterline rejected show ID --payload" and send its other events with "meterline emit"';

/** @param payload the payload of the rejection */
export function resendable({ reason }: Pick<OpenRejection, 'reason'>, payload: string, edits: Edits): Resendable {
  const content = parseEventJson(payload);
  if (content === undefined) return unsendable('its payload is not JSON');
  const whole = isJobRejection(reason);
  const edited = editedContent(content, edits);
  if (edited === undefined) return unsendable('it is not an object, so it has no fields to edit');
  // Read back from its text: what cannot be written, and Infinity, must not reach the queue's own JSON.stringify.
  const text = payloadOf(edited);
  if (text === undefined) return unsendable(TOO_DEEP);
  const sendable: unknown = JSON.parse(text);
  return whole ? { kind: 'jobs', jobs: jobsOf(sendable) } : { kind: 'event', event: sendable };
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
