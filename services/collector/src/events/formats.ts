/** The formats of a body, and the events in it, still unchecked. */
import type { IncomingHttpHeaders } from 'node:http';
import { parseJson, tooManyValues } from '@meterline/catalog';
import { envelopeOf, isBinaryCloudEvent, type Opened, openCloudEvent } from './cloud-events.js';
import {
  MAX_EVENTS,
  malformedBody,
  moreValuesThanAJob,
  noEvents,
  notJson,
  tooManyEvents,
  unsupported,
} from './limits.js';

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

/** An event as a producer sends it, or what is wrong with the envelope that it came in. */
export type Found = Opened;

/**
 * @param headers of a CloudEvent in binary mode
 * @throws ApiError `invalid_body` when the body has no events in this format, `too_many_events`, `body_too_large`
 */
export function readEvents(text: string, format: Format, account: string, headers: IncomingHttpHeaders): Found[] {
  // Counted before it is parsed: 5 MB of brackets would become hundreds of megabytes.
  if (tooManyValues(text)) throw moreValuesThanAJob();
  switch (format) {
    case 'json':
      return eventsOf(parsed(text)).map(asFound);
    case 'ndjson':
      return linesOf(text).map((line) => asFound(parseJson(line)));
    case 'cloudEvent':
      return [openCloudEvent(parsed(text), account)];
    case 'cloudEventBatch':
      return listOf(parsed(text), 'an array of CloudEvents').map((envelope) => openCloudEvent(envelope, account));
    case 'binaryCloudEvent':
      return [openCloudEvent(envelopeOf(headers, parsed(text)), account)];
  }
}

export function asFound(event: unknown): Found {
  return { ok: true, event };
}

function parsed(text: string): unknown {
  const value = parseJson(text);
  if (value === undefined) throw notJson();
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
  return bounded(value);
}

/** Empty lines are nothing. */
function linesOf(text: string): readonly string[] {
  return bounded(text.split('\n').filter((line) => line.trim() !== ''));
}

function bounded<T>(events: readonly T[]): readonly T[] {
  if (events.length === 0) throw noEvents();
  if (events.length > MAX_EVENTS) throw tooManyEvents();
  return events;
}
