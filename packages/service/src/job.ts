/** Checks the shape and the size of a job on the queue. Source: docs/decisions/0017. */
import {
  type Checked,
  MAX_EVENTS_PER_JOB,
  MAX_JOB_BYTES,
  MAX_JOB_VALUES,
  type Rejection,
  rejected,
} from '@meterline/catalog/plain';

/** Returns the unvalidated events of a job: one event, or `{ "events": [ … ] }` with 1 to 5,000. Other jobs are rejected as a whole. */
export function eventsOfJob(data: unknown): Checked<readonly unknown[]> {
  if (typeof data !== 'object' || data === null || Array.isArray(data)) {
    return rejected('job_not_an_object', 'the data of a job must be one event or { "events": [ … ] }');
  }
  if (!('events' in data)) return { ok: true, value: [data] };
  const { events, ...others } = data;
  const strays = Object.keys(others);
  if (strays.length > 0) {
    return rejected('job_invalid', `a job with "events" must have no other field; remove ${strays.join(', ')}`);
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

export function tooManyBytes(bytes: number): Rejection | undefined {
  if (bytes <= MAX_JOB_BYTES) return undefined;
  return rejected(
    'job_oversized',
    `the data of a job may have at most ${MAX_JOB_BYTES} bytes, this one has ${bytes}; split it`,
  );
}

/** Returns a rejection if a job has too many JSON values. They are counted before parsing, because counting takes a fraction of the time. */
export function tooManyValues(text: string): Rejection | undefined {
  if (text.length <= MAX_JOB_VALUES || countValues(text, MAX_JOB_VALUES) <= MAX_JOB_VALUES) return undefined;
  return rejected(
    'job_oversized',
    `the data of a job may have at most ${MAX_JOB_VALUES} JSON values, this one has more; split it, a job holds 1 to ${MAX_EVENTS_PER_JOB} events`,
  );
}

const QUOTE = '"'.charCodeAt(0);
const COMMA = ','.charCodeAt(0);
const BRACKET = '['.charCodeAt(0);
const BRACE = '{'.charCodeAt(0);
const BACKSLASH = '\\'.charCodeAt(0);

/** Counts JSON values by their commas and opening brackets, except inside strings. @returns the count, at most `limit + 1` */
export function countValues(text: string, limit: number): number {
  let values = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === COMMA || character === BRACE || character === BRACKET) values += 1;
    if (values > limit) break;
  }
  return values;
}

/** @returns the index of the closing quote, or the length of the text if the string is not closed */
export function endOfString(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (end !== -1 && isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end === -1 ? text.length : end;
}

function isEscaped(text: string, at: number): boolean {
  let backslashes = 0;
  while (text.charCodeAt(at - 1 - backslashes) === BACKSLASH) backslashes += 1;
  return backslashes % 2 === 1;
}
