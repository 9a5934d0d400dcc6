/** Converts the payload of a rejection to the event or jobs to send again, with edited fields. All functions are pure. */
import {
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
  | { readonly kind: 'jobs'; readonly jobs: readonly unknown[] }
  | { readonly kind: 'unsendable'; readonly why: string };

export interface Edits {
  readonly set: ReadonlyMap<string, unknown>;
  readonly unset: ReadonlySet<string>;
}

/** Event fields whose values are not strings. Usage may be a string, which keeps every digit. */
const JSON_FIELDS = ['revision', 'void'];

/** Parses an edit such as `workspace=production`. Returns undefined if the edit is invalid. */
export function parseEdit(text: string): { readonly field: string; readonly value: unknown } | undefined {
  const [, field, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
  if (field === undefined || value === undefined) return undefined;
  return { field, value: JSON_FIELDS.includes(field) ? (parseJson(value) ?? value) : value };
}

export const OVERSIZED =
  'it is too large for one job; save its data with "meterline rejected show ID --payload", and send its events with "meterline emit"';

const TOO_DEEP =
  'it is nested too deeply to be sent; --unset the field that is, or print a job with "meterline rejected show ID --payload" and send its other events with "meterline emit"';

export function resendable({ reason }: Pick<OpenRejection, 'reason'>, payload: string, edits: Edits): Resendable {
  const content = parseEventJson(payload);
  if (content === undefined) return unsendable('its payload is not JSON');
  const whole = isJobRejection(reason);
  const edited = editedContent(content, edits);
  if (edited === undefined) return unsendable('it is not an object, so it has no fields to edit');
  // Convert the content to JSON and back here, because JSON.stringify in the queue would fail for deep nesting and turn Infinity into null.
  const text = payloadOf(edited);
  if (text === undefined) return unsendable(TOO_DEEP);
  const sendable: unknown = JSON.parse(text);
  return whole ? { kind: 'jobs', jobs: jobsOf(sendable) } : { kind: 'event', event: sendable };
}

/** Applies the edits. Returns undefined if there are edits but the content has no fields. */
function editedContent(content: unknown, edits: Edits): unknown {
  if (edits.set.size === 0 && edits.unset.size === 0) return content;
  if (typeof content !== 'object' || content === null || Array.isArray(content)) return undefined;
  return applyEdits(content, edits);
}

export function applyEdits(event: object, { set, unset }: Edits): object {
  const kept = Object.entries(event).filter(([field]) => !unset.has(field));
  return Object.fromEntries([...kept, ...set]);
}

/** Splits events into jobs with at most MAX_JOB_VALUES JSON values each. A worker would reject a larger job completely. */
export function jobsOfEvents(events: readonly unknown[]): { readonly events: readonly unknown[] }[] {
  const jobs: { events: unknown[] }[] = [];
  let values = Number.POSITIVE_INFINITY;
  for (const event of events) {
    const own = 1 + countValues(JSON.stringify(event), MAX_JOB_VALUES);
    values += own;
    // The job object and its list of events count as two more values.
    if (values > MAX_JOB_VALUES - 2) {
      jobs.push({ events: [] });
      values = own;
    }
    jobs.at(-1)?.events.push(event);
  }
  return jobs;
}

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
