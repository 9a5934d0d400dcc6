/** Reads and decodes request bodies in bounded memory, and splits them into events. The events are checked later. */
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { ApiError, ClientGone, type Reservation } from '@meterline/api';
import { isRecord, MAX_EVENTS_PER_JOB, parseEventJson } from '@meterline/catalog';
import { countValues, endOfString } from '@meterline/service';
import { z } from 'zod';
import { ZSTDDecoder } from 'zstddec';
import { CLOUD_EVENT_REASON, envelopeOf, isBinaryCloudEvent, openCloudEvent, Unreadable } from './check.js';

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
    if (parameter.startsWith('charset=') && !/^charset="?utf-?8"?$/.test(parameter)) {
      throw unsupported('The charset must be utf-8, or left out.');
    }
  }
  return format === 'json' && isBinaryCloudEvent(headers) ? 'binaryCloudEvent' : format;
}

/** Invalid UTF-8 is rejected, because replacement characters would change names. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * Yields the events of a body one by one, so that the caller can serve other requests in between. Parsing a whole body with 100,000
 * different property names at once would block the process for seconds.
 * @param account the account of events that name no account
 * @param headers request headers, which contain the attributes of a CloudEvent in binary mode
 * @returns for each event: the event as sent, or an `Unreadable`
 * @throws ApiError `invalid_body` or `too_many_events`, possibly after some events
 */
export function* readEvents(
  body: Buffer,
  format: Format,
  account: string | undefined,
  headers: IncomingHttpHeaders,
): Iterable<unknown> {
  const content = decoded(body);
  let count = 0;
  for (const text of textsOf(content, format)) {
    count += 1;
    // The number is limited because all events of a request must fit into one job, so that they become durable together.
    if (count > MAX_EVENTS_PER_JOB) throw tooManyEvents();
    const event = isTooLarge(text) ? TOO_LARGE : eventOf(text, format, account, headers);
    if (text === content && format === 'json' && (event === TOO_LARGE || (isRecord(event) && 'events' in event))) {
      throw malformedBody(NEITHER);
    }
    yield event;
  }
  if (count === 0) throw malformedBody(`The body has no events; send 1 to ${MAX_EVENTS_PER_JOB}.`);
}

const CONTENT: Partial<Record<Format, string>> = {
  json: 'one event, or one array of events and nothing after it',
  cloudEventBatch: `one array of CloudEvents; send a single CloudEvent with the Content-Type ${MEDIA_TYPES.cloudEvent}`,
};

function notJson(format: Format): ApiError {
  const { [format]: content = 'one CloudEvent' } = CONTENT;
  return malformedBody(`The body must be JSON: ${content}.`);
}

function decoded(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw malformedBody('The body is not UTF-8.');
  }
}

/** Maximum number of fields, elements, objects and arrays in an event. A CloudEvent envelope with extension attributes must fit as well. */
const MAX_EVENT_VALUES = 256;
const NEITHER = `A body that is an object is one event, of at most ${MAX_EVENT_VALUES} values, or has "events", an array of events, and no other member.`;
const TOO_LARGE = new Unreadable(
  'unknown_field',
  `the JSON of an event may have at most ${MAX_EVENT_VALUES} values, this one has more; it was not read`,
);

const LINE_IS_NOT_JSON = new Unreadable(
  'event_not_an_object',
  'the line is not valid JSON; each line must be one event, a JSON object without line breaks',
);

const CLOUD_EVENT_AS_JSON = new Unreadable(
  CLOUD_EVENT_REASON,
  `this is a CloudEvent; send it with the Content-Type ${MEDIA_TYPES.cloudEvent}, or several in an array with ${MEDIA_TYPES.cloudEventBatch}`,
);

/**
 * Returns whether the JSON of an event has too many values. Values are counted before parsing, because 5 MB of brackets would become
 * hundreds of megabytes of objects. A value takes at least two characters, so short strings need no count.
 */
function isTooLarge(text: string): boolean {
  return text.length > 2 * MAX_EVENT_VALUES && countValues(text, MAX_EVENT_VALUES) > MAX_EVENT_VALUES;
}

function eventOf(text: string, format: Format, account: string | undefined, headers: IncomingHttpHeaders): unknown {
  const value = parseEventJson(text);
  if (value === undefined) {
    if (format !== 'ndjson') throw notJson(format);
    return LINE_IS_NOT_JSON;
  }
  if (format === 'json' || format === 'ndjson') {
    return isRecord(value) && 'specversion' in value ? CLOUD_EVENT_AS_JSON : value;
  }
  const envelope = format === 'binaryCloudEvent' ? envelopeOf(headers, value) : value;
  return envelope instanceof Unreadable ? envelope : openCloudEvent(envelope, account);
}

const LINE = /[^ \t\r\n][^\n]*/g;
const OBJECT = /^[ \t\r\n]*\{/;
const ARRAY = { opening: /^[ \t\r\n]*\[/, rest: /^[ \t\r\n]*$/ };
/** Matches a body that has the form of job data in the queue: `{"events": […]}`. */
const JOB = { opening: /^[ \t\r\n]*\{[ \t\r\n]*"events"[ \t\r\n]*:[ \t\r\n]*\[/, rest: /^[ \t\r\n]*\}[ \t\r\n]*$/ };

function textsOf(text: string, format: Format): Iterable<string> {
  switch (format) {
    case 'json':
      if (JOB.opening.test(text)) return elementsOf(text, format, JOB);
      return OBJECT.test(text) ? [text] : elementsOf(text, format);
    case 'ndjson':
      return linesOf(text);
    case 'cloudEventBatch':
      return elementsOf(text, format);
    case 'cloudEvent':
    case 'binaryCloudEvent':
      return [text];
  }
}

function* linesOf(text: string): Iterable<string> {
  for (const [line] of text.matchAll(LINE)) yield line;
}

const [QUOTE, COMMA, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = Buffer.from('",[]{}');

/**
 * Yields the JSON of each array element, which may be invalid. @throws ApiError `invalid_body` if the body is not one array
 */
function* elementsOf(text: string, format: Format, { opening, rest } = ARRAY): Iterable<string> {
  const start = opening.exec(text)?.[0].length ?? text.length;
  let depth = 0;
  let from = start;
  for (let at = start; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === QUOTE) at = endOfString(text, at);
    else if (character === OPEN_BRACE || character === OPEN_BRACKET) depth += 1;
    else if (depth > 0) depth -= character === CLOSE_BRACE || character === CLOSE_BRACKET ? 1 : 0;
    else if (character === COMMA) {
      yield text.slice(from, at);
      from = at + 1;
    } else if (character === CLOSE_BRACKET) {
      const last = text.slice(from, at);
      if (from > start || last.trim() !== '') yield last;
      if (!rest.test(text.slice(at + 1))) throw notJson(format);
      return;
    }
  }
  throw notJson(format);
}

/** Limits both the body as sent and the decoded body. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

/** Estimated memory of a chunk beyond its bytes. The overhead matters because a client may send one byte at a time. */
const CHUNK_OVERHEAD = 128;

/** Returns the Content-Length, or 0 if there is no such header. @throws ApiError `body_too_large` */
export function announcedBytes({ headers }: IncomingMessage): number {
  const bytes = Number(headers['content-length'] ?? 0);
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return bytes;
}

/**
 * Reads the body as sent. The body parser of Express is not used, because it cannot limit the total size of an account's bodies.
 * @param reservation grows with the bytes that have arrived
 * @throws ApiError `body_too_large`, `server_busy` or `too_many_bytes_in_flight`
 * @throws ClientGone if the client disconnects
 */
export async function readBody(request: IncomingMessage, reservation: Reservation): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  const onData = (chunk: Buffer) => {
    length += chunk.length;
    chunks.push(chunk);
    try {
      if (length > MAX_BODY_BYTES) throw bodyTooLarge();
      reservation.resize(length + chunks.length * CHUNK_OVERHEAD);
    } catch (error) {
      reservation.end(error);
    }
  };
  request.on('data', onData);
  try {
    await finished(request, { writable: false, signal: reservation.signal });
  } catch {
    throw reservation.signal.aborted ? reservation.signal.reason : new ClientGone();
  } finally {
    // Node discards the rest of the body, so that the client can read the response.
    request.off('data', onData);
  }
  reservation.resize(length);
  return Buffer.concat(chunks, length);
}

type Decode = (body: Buffer) => Promise<Buffer>;
const DECODERS = { gzip: gunzipped, zstd: unpackedZstd } as const satisfies Record<string, Decode>;
const ENCODINGS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['identity', async (body) => body],
  // The name `x-gzip` is an alias of gzip. Source: RFC 9110, section 8.4.1.3.
  ['x-gzip', gunzipped],
  ...Object.entries(DECODERS),
]);

/** Returns a decoder whose output is at most {@link MAX_BODY_BYTES}. @throws ApiError `unsupported_media_type` */
export function decoderOf(header: string | undefined): Decode {
  const decode = ENCODINGS.get((header || 'identity').trim().toLowerCase());
  if (decode) return decode;
  const accepted = Object.keys(DECODERS).join(', ');
  throw unsupported(`Content-Encoding may be ${accepted} or left out.`, { 'Accept-Encoding': accepted });
}

const unzip = promisify(gunzip);
const tooLarge = z.object({ code: z.literal('ERR_BUFFER_TOO_LARGE') });

async function gunzipped(body: Buffer): Promise<Buffer> {
  try {
    return await unzip(body, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    if (tooLarge.safeParse(error).success) throw bodyTooLarge();
    throw malformedBody('The body is not gzip, as Content-Encoding says, or not all of it arrived.');
  }
}

const zstd = new ZSTDDecoder();

/**
 * Decodes zstd into one buffer of the maximum size. Memory therefore does not depend on the window size that the sender chose. Uses the
 * package zstddec, because Node has its own decoder only since 22.15. The package returns an empty array if decoding fails.
 */
async function unpackedZstd(body: Buffer): Promise<Buffer> {
  // The first call compiles the decoder. Later calls return immediately.
  await zstd.init();
  const content = zstd.decode(body, MAX_BODY_BYTES);
  if (content.length > 0) return Buffer.from(content);
  const message = `The body is not zstd, as Content-Encoding says, or has more than ${MAX_BODY_BYTES} bytes when decoded.`;
  throw malformedBody(message);
}

function bodyTooLarge(): ApiError {
  const message = `The body may have ${MAX_BODY_BYTES} bytes, as sent and decoded; send fewer events in one request.`;
  return new ApiError(413, 'body_too_large', message);
}

/** The message does not state the number of events, because the rest of the body is not read. */
export function tooManyEvents(): ApiError {
  const message = `A request may hold ${MAX_EVENTS_PER_JOB} events, this one has more; split it into several requests.`;
  return new ApiError(413, 'too_many_events', message);
}

export function unsupported(message: string, headers: Readonly<Record<string, string>> = {}): ApiError {
  return new ApiError(415, 'unsupported_media_type', message, { headers });
}

function malformedBody(message: string): ApiError {
  return new ApiError(400, 'invalid_body', message);
}
