/** A body: its bytes, decoded, in memory that is bounded whatever the client does; its format; and the events in it, still unchecked. */
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
    if (parameter.startsWith('charset=') && !/^charset="?utf-?8"?$/.test(parameter)) {
      throw unsupported('The charset must be utf-8, or left out.');
    }
  }
  return format === 'json' && isBinaryCloudEvent(headers) ? 'binaryCloudEvent' : format;
}

/** UTF-8; half a character would become another name. */
const utf8 = new TextDecoder('utf-8', { fatal: true });

/**
 * The events of a body, one after the other, each parsed when it is its turn: a body that is parsed whole would hold up all other requests
 * meanwhile, for seconds if its objects have a hundred thousand different names.
 * @param account the account of events that name none, if there is one
 * @param headers the headers of the request, in which a CloudEvent in binary mode has its attributes
 * @returns each as a producer sends it, or an `Unreadable`; undefined for a line that is not JSON
 * @throws ApiError `invalid_body` when the body has no events in this format, `too_many_events`; also while the events are read
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
    // All events of a request go into one job, so that they are durable together.
    if (count > MAX_EVENTS_PER_JOB) throw tooManyEvents();
    const event = isTooLarge(text) ? TOO_LARGE : eventOf(text, format, account, headers);
    if (text === content && format === 'json' && (event === TOO_LARGE || (isRecord(event) && 'events' in event))) {
      throw malformedBody(NEITHER);
    }
    yield event;
  }
  if (count === 0) throw malformedBody(`The body has no events; send 1 to ${MAX_EVENTS_PER_JOB}.`);
}

function notJson(): ApiError {
  return malformedBody('The body must be JSON: an event, or an array of events that has nothing beside it.');
}

function decoded(body: Buffer): string {
  try {
    return utf8.decode(body);
  } catch {
    throw malformedBody('The body is not UTF-8.');
  }
}

/** Fields, elements, objects and arrays: those of an event, and of an envelope around it with many attributes of its own. */
const MAX_EVENT_VALUES = 256;
const NEITHER = `A body that is an object is one event, of at most ${MAX_EVENT_VALUES} values, or has "events", an array of events, and no other member.`;
const TOO_LARGE = new Unreadable(
  'unknown_field',
  `the JSON of an event may have at most ${MAX_EVENT_VALUES} values, this one has more; it was not read`,
);

const CLOUD_EVENT_AS_JSON = new Unreadable(
  CLOUD_EVENT_REASON,
  `this is a CloudEvent; send it with the Content-Type ${MEDIA_TYPES.cloudEvent}, or several in an array with ${MEDIA_TYPES.cloudEventBatch}`,
);

/** Counting is a fraction of parsing: 5 MB of brackets would become hundreds of megabytes. Each value takes two characters of JSON at least. */
function isTooLarge(text: string): boolean {
  return text.length > 2 * MAX_EVENT_VALUES && countValues(text, MAX_EVENT_VALUES) > MAX_EVENT_VALUES;
}

function eventOf(text: string, format: Format, account: string | undefined, headers: IncomingHttpHeaders): unknown {
  const value = parseEventJson(text);
  if (value === undefined && format !== 'ndjson') throw notJson();
  if (format === 'json' || format === 'ndjson') {
    return isRecord(value) && 'specversion' in value ? CLOUD_EVENT_AS_JSON : value;
  }
  const envelope = format === 'binaryCloudEvent' ? envelopeOf(headers, value) : value;
  return envelope instanceof Unreadable ? envelope : openCloudEvent(envelope, account);
}

/** Empty lines are nothing. */
const LINE = /[^ \t\r\n][^\n]*/g;
const OBJECT = /^[ \t\r\n]*\{/;
const ARRAY = { opening: /^[ \t\r\n]*\[/, rest: /^[ \t\r\n]*$/ };
/** What a job of the queue holds. */
const JOB = { opening: /^[ \t\r\n]*\{[ \t\r\n]*"events"[ \t\r\n]*:[ \t\r\n]*\[/, rest: /^[ \t\r\n]*\}[ \t\r\n]*$/ };

/** The JSON of each event, unparsed. */
function textsOf(text: string, format: Format): Iterable<string> {
  switch (format) {
    case 'json':
      if (JOB.opening.test(text)) return elementsOf(text, JOB);
      return OBJECT.test(text) ? [text] : elementsOf(text, ARRAY);
    case 'ndjson':
      return linesOf(text);
    case 'cloudEventBatch':
      return elementsOf(text, ARRAY);
    case 'cloudEvent':
    case 'binaryCloudEvent':
      return [text];
  }
}

function* linesOf(text: string): Iterable<string> {
  for (const [line] of text.matchAll(LINE)) yield line;
}

const [QUOTE, COMMA, OPEN_BRACKET, CLOSE_BRACKET, OPEN_BRACE, CLOSE_BRACE] = Buffer.from('",[]{}');

/** The elements of an array, and nothing else in the body. Each is still to be parsed, which finds what is wrong inside of it. */
function* elementsOf(text: string, { opening, rest }: typeof ARRAY): Iterable<string> {
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
      if (!rest.test(text.slice(at + 1))) throw notJson();
      return;
    }
  }
  throw notJson();
}

/** As sent, and again when it is decoded: 5 MiB. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;

/** What a piece takes in memory besides its bytes: a client may send one byte at a time. */
const PIECE_OVERHEAD = 128;

/** How many bytes the request says that it has: of one that does not say, 0. @throws ApiError `body_too_large` */
export function announcedBytes({ headers }: IncomingMessage): number {
  const bytes = Number(headers['content-length'] ?? 0);
  if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
  return bytes;
}

/**
 * Reads the body as it was sent. Express' own reader knows no bound on all bodies of an account.
 * @param reservation takes what has arrived
 * @throws ApiError `body_too_large`, `server_busy`, `too_many_bytes_in_flight`; ClientGone
 */
export async function readBody(request: IncomingMessage, reservation: Reservation): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  const onData = (piece: Buffer) => {
    length += piece.length;
    pieces.push(piece);
    try {
      if (length > MAX_BODY_BYTES) throw bodyTooLarge();
      reservation.resize(length + pieces.length * PIECE_OVERHEAD);
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
    // What is still to come is dropped, so that the client gets its response.
    request.off('data', onData);
  }
  reservation.resize(length);
  return Buffer.concat(pieces, length);
}

type Decode = (body: Buffer) => Promise<Buffer>;
const DECODERS = { gzip: gunzipped, zstd: unpackedZstd } as const satisfies Record<string, Decode>;
const ENCODINGS: ReadonlyMap<string, Decode> = new Map<string, Decode>([
  ['identity', async (body) => body],
  // RFC 9110, section 8.4.1.3: the same.
  ['x-gzip', gunzipped],
  ...Object.entries(DECODERS),
]);

/** What undoes the `Content-Encoding` of a request; no input makes more than the limit of it. @throws ApiError `unsupported_media_type` */
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
 * Decodes into a buffer of the limit's size, so no window is kept, whatever a frame asks for. The decoder returns nothing where it
 * fails. Node has one of its own from 22.15 on.
 */
async function unpackedZstd(body: Buffer): Promise<Buffer> {
  // Only the first call waits: for the decoder to be compiled.
  await zstd.init();
  const content = zstd.decode(body, MAX_BODY_BYTES);
  if (content.length > 0) return Buffer.from(content);
  const message = `The body is not zstd, as Content-Encoding says, or has more than ${MAX_BODY_BYTES} bytes when decoded.`;
  throw malformedBody(message);
}

function bodyTooLarge(): ApiError {
  const message = `The body may have ${MAX_BODY_BYTES} bytes, as sent and when it is decoded; send fewer events in one request.`;
  return new ApiError(413, 'body_too_large', message);
}

/** How many there are is not known: the rest is not read. */
export function tooManyEvents(): ApiError {
  const message = `A request may hold ${MAX_EVENTS_PER_JOB} events, this one has more; send them in several.`;
  return new ApiError(413, 'too_many_events', message);
}

/** @param message a sentence that says what is wrong and what to send */
export function unsupported(message: string, headers: Readonly<Record<string, string>> = {}): ApiError {
  return new ApiError(415, 'unsupported_media_type', message, { headers });
}

function malformedBody(message: string): ApiError {
  return new ApiError(400, 'invalid_body', message);
}
