/** From the bytes of a body to its text: what `Content-Encoding` and UTF-8 say. No input makes more than the limit of it. */
import { pipeline } from 'node:stream';
import { createGunzip, gunzipSync } from 'node:zlib';
import { ApiError, ClientGone } from '@meterline/api';
import { z } from 'zod';
import { ZSTDDecoder } from 'zstddec';
import { PIECE_BYTES } from './body.js';
import { bodyTooLarge, MAX_BODY_BYTES, malformedBody, unsupported } from './limits.js';

const ENCODINGS = ['gzip', 'zstd', 'identity'] as const;
export type Encoding = (typeof ENCODINGS)[number];

const zstd = new ZSTDDecoder();

/** To be awaited before a body of zstd is decoded. The first one waits for the decoder to be compiled, so that no start does. */
export async function prepareZstd(): Promise<void> {
  await zstd.init();
}

/** @throws ApiError `unsupported_media_type` */
export function encodingOf(header: string | undefined): Encoding {
  const name = (header ?? 'identity').trim().toLowerCase();
  // RFC 9110, section 8.4.1.3: the same.
  const encoding = ENCODINGS.find((known) => known === name || (known === 'gzip' && name === 'x-gzip'));
  if (encoding) return encoding;
  const accepted = ENCODINGS.filter((known) => known !== 'identity').join(', ');
  throw unsupported(`Content-Encoding may be ${accepted} or left out.`, { 'Accept-Encoding': accepted });
}

/**
 * The same piece by piece, each of about `PIECE_BYTES`. Not for zstd, whose decoder knows no pieces.
 * @throws ApiError `invalid_body`, and what reading the pieces does
 */
export function decodedPieces(pieces: AsyncIterable<Buffer>, encoding: Encoding): AsyncIterable<Buffer> {
  return encoding === 'gzip' ? gunzippedPieces(pieces) : pieces;
}

export function* piecesOf(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** Unpacked in another thread. */
async function* gunzippedPieces(pieces: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  // An error of either side is thrown below.
  const gunzip = pipeline(pieces, createGunzip({ chunkSize: PIECE_BYTES }), () => undefined);
  try {
    yield* gunzip;
  } catch (error) {
    throw error instanceof ApiError || error instanceof ClientGone ? error : notGzip();
  }
}

function notGzip(): ApiError {
  return malformedBody('The body is not gzip, as Content-Encoding says, or not all of it arrived.');
}

/**
 * One body at a time, because decoding does not wait: at most the limit is in memory beside what the caller holds.
 * @throws ApiError `body_too_large`, `invalid_body`
 */
export function decodeBody(body: Buffer, encoding: Encoding): Buffer {
  switch (encoding) {
    case 'identity':
      return body;
    case 'gzip':
      return gunzipped(body);
    case 'zstd':
      return unpackedZstd(body);
  }
}

const tooLarge = z.object({ code: z.literal('ERR_BUFFER_TOO_LARGE') });

function gunzipped(body: Buffer): Buffer {
  try {
    return gunzipSync(body, { maxOutputLength: MAX_BODY_BYTES });
  } catch (error) {
    if (tooLarge.safeParse(error).success) throw bodyTooLarge();
    throw notGzip();
  }
}

/**
 * Decodes into a buffer of the limit's size, so no window is kept, whatever a frame asks for. The decoder returns nothing
 * where it fails.
 */
function unpackedZstd(body: Buffer): Buffer {
  if (declaredSize(body) > MAX_BODY_BYTES) throw bodyTooLarge();
  const content = zstd.decode(body, MAX_BODY_BYTES);
  if (content.length > 0) return Buffer.from(content.buffer, content.byteOffset, content.byteLength);
  throw malformedBody(
    `The body is not zstd, as Content-Encoding says, or has more than ${MAX_BODY_BYTES} bytes when decoded.`,
  );
}

const ZSTD_MAGIC = 0xfd2fb528;

/** What the first frame says that it holds; 0 if it does not. Source: RFC 8878, section 3.1.1.1. */
function declaredSize(body: Buffer): number {
  if (body.length < 18 || body.readUInt32LE(0) !== ZSTD_MAGIC) return 0;
  const descriptor = body.readUInt8(4);
  const isSingleSegment = (descriptor & 0x20) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3] ?? 0;
  const at = 5 + (isSingleSegment ? 0 : 1) + dictionaryBytes;
  switch (descriptor >> 6) {
    case 0:
      return isSingleSegment ? body.readUInt8(at) : 0;
    case 1:
      return body.readUInt16LE(at) + 256;
    case 2:
      return body.readUInt32LE(at);
    default:
      return Number(body.readBigUInt64LE(at));
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });
/** Only at its beginning has a text a mark of its byte order. */
const laterUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** @throws ApiError `invalid_body`: half a character would become another name */
export function textOf(body: Buffer, decoder = utf8): string {
  try {
    return decoder.decode(body);
  } catch {
    throw malformedBody('The body is not UTF-8.');
  }
}

/** The same piece by piece. TextDecoder's own `stream` takes five times as long, and makes texts of twice the size. */
export class TextPieces {
  #rest = Buffer.alloc(0);
  #isBegun: boolean;

  /** @param isBegun whether a part of the text came before */
  constructor(isBegun = false) {
    this.#isBegun = isBegun;
  }

  /** @throws ApiError `invalid_body` */
  push(piece: Buffer): string {
    const bytes = this.#rest.length === 0 ? piece : Buffer.concat([this.#rest, piece]);
    const end = bytes.length - unfinished(bytes);
    this.#rest = Buffer.from(bytes.subarray(end));
    return this.#text(bytes.subarray(0, end));
  }

  /** @throws ApiError `invalid_body` when it ends within a character */
  end(): void {
    this.#text(this.#rest);
  }

  #text(bytes: Buffer): string {
    if (bytes.length === 0) return '';
    const text = textOf(bytes, this.#isBegun ? laterUtf8 : utf8);
    this.#isBegun = true;
    return text;
  }
}

/** How many bytes at the end begin a character that has more. Source: RFC 3629, section 3. */
function unfinished(bytes: Buffer): number {
  for (let back = 1; back <= Math.min(3, bytes.length); back += 1) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return 0;
    const length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    if (length > 1) return length > back ? back : 0;
  }
  return 0;
}
