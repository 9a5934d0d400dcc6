/** The formats of a body, and the events in it, still unchecked. */
import type { IncomingHttpHeaders } from 'node:http';
import { countValues, MAX_JOB_VALUES, parseJson, tooManyValues } from '@meterline/catalog';
import { envelopeOf, isBinaryCloudEvent, openCloudEvent } from './cloud-events.js';
import { MAX_EVENTS, malformedBody, moreValuesThanAJob, noEvents, tooManyEvents, unsupported } from './limits.js';

export const MEDIA_TYPES = {
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  cloudEvent: 'application/cloudevents+json',
  cloudEventBatch: 'application/cloudevents-batch+json',
} as const;

export type Format = keyof typeof MEDIA_TYPES | 'binaryCloudEvent';

const FORMATS: Readonly<Record<string, Exclude<Format, 'binaryCloudEvent'>>> = {
  [MEDIA_TYPES.json]: 'json',
  [MEDIA_TYPES.ndjson]: 'ndjson',
  'application/ndjson': 'ndjson',
  'application/jsonl': 'ndjson',
  [MEDIA_TYPES.cloudEvent]: 'cloudEvent',
  [MEDIA_TYPES.cloudEventBatch]: 'cloudEventBatch',
};

/** @throws ApiError `unsupported_media_type` */
export function formatOf(headers: IncomingHttpHeaders): Format {
  const [type = '', ...parameters] = (headers['content-type'] ?? '')
    .split(';')
    .map((part) => part.trim().toLowerCase());
  const format = FORMATS[type];
  if (format === undefined) {
    const sent = type === '' ? 'it is missing' : `not ${JSON.stringify(type)}`;
    throw unsupported(`Content-Type must be one of ${Object.values(MEDIA_TYPES).join(', ')}; ${sent}.`, {
      Accept: Object.values(MEDIA_TYPES).join(', '),
    });
  }
  for (const parameter of parameters) {
    if (parameter.startsWith('charset=') && !/^charset="?utf-8"?$/.test(parameter)) {
      throw unsupported('The charset must be utf-8, or left out.');
    }
  }
  return format === 'json' && isBinaryCloudEvent(headers) ? 'binaryCloudEvent' : format;
}

/** UTF-8; half a character would become another name. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The events of a body, one after the other; each is an event as a producer sends it, or a `BrokenEnvelope`.
 * @param headers of a CloudEvent in binary mode
 * @throws ApiError `invalid_body` when the body has no events in this format, `too_many_events`, `body_too_large`; for lines, while
 * they are read
 */
export function readEvents(
  body: Buffer,
  format: Format,
  account: string,
  headers: IncomingHttpHeaders,
): Iterable<unknown> {
  const text = textOf(body);
  switch (format) {
    case 'json':
      return eventsOf(parsed(text));
    case 'ndjson':
      return linesOf(text);
    case 'cloudEvent':
      return [openCloudEvent(parsed(text), account)];
    case 'cloudEventBatch':
      return listOf(parsed(text), 'an array of CloudEvents').map((envelope) => openCloudEvent(envelope, account));
    case 'binaryCloudEvent':
      return [openCloudEvent(envelopeOf(headers, parsed(text)), account)];
  }
}

function textOf(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw malformedBody('The body is not UTF-8.');
  }
}

/** What has too many values is not parsed: 5 MB of brackets would become hundreds of megabytes. */
function parsed(text: string): unknown {
  if (tooManyValues(text)) throw moreValuesThanAJob();
  const value = parseJson(text);
  if (value === undefined) throw malformedBody('The body is not JSON.');
  return value;
}

/** One event, an array of events, or what a job of the queue holds. */
function eventsOf(value: unknown): readonly unknown[] {
  if (typeof value !== 'object' || value === null) return listOf(value, 'an event or an array of events');
  if (Array.isArray(value)) return listOf(value, 'an array of events');
  if (!('events' in value)) return [value];
  const strays = Object.keys(value).filter((name) => name !== 'events');
  if (strays.length > 0) throw malformedBody('Beside "events", the body may have no other member.');
  return listOf(value.events, 'an array of events in "events"');
}

function listOf(value: unknown, rule: string): readonly unknown[] {
  if (!Array.isArray(value)) throw malformedBody(`The body must be ${rule}.`);
  if (value.length === 0) throw noEvents();
  if (value.length > MAX_EVENTS) throw tooManyEvents();
  return value;
}

/** Empty lines are nothing, and what is not JSON is undefined. All lines together may have the values of one body. */
function* linesOf(text: string): Iterable<unknown> {
  let count = 0;
  let values = 0;
  for (const [line] of text.matchAll(/[^\n]+/g)) {
    if (line.trim() === '') continue;
    count += 1;
    if (count > MAX_EVENTS) throw tooManyEvents();
    if (text.length > MAX_JOB_VALUES) values += countValues(line, MAX_JOB_VALUES - values);
    if (values > MAX_JOB_VALUES) throw moreValuesThanAJob();
    yield parseJson(line);
  }
  if (count === 0) throw noEvents();
}
