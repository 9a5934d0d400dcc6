/** From a request to the bytes of its body, decoded, in memory that is bounded whatever the client does; and what is said to one that holds too much. */
import type { IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { ApiError, ClientGone } from '@meterline/api';
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import { z } from 'zod';
import { ZSTDDecoder } from 'zstddec';
import type { Reservation } from '../byte-budget.js';

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
  const decode = ENCODINGS.get((header ?? 'identity').trim().toLowerCase());
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

export function malformedBody(message: string): ApiError {
  return new ApiError(400, 'invalid_body', message);
}
