/**
 * The body of an answer: JSON as it was written, or compressed. Either is in memory of its own: Buffer.from would take a short one
 * from 8 KB that others share, and zlib from 16 KB, and keeping it would keep all of that.
 */
import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import { promisify } from 'node:util';
import { gunzip, gzip } from 'node:zlib';

export interface Answer {
  /** JSON, or JSON in gzip. */
  readonly body: Buffer;
  readonly isCompressed: boolean;
  /** Bytes of the JSON. */
  readonly length: number;
  /** Weak (RFC 9110, section 8.8.1), because the body may be sent compressed. */
  readonly etag: string;
}

/** Shorter ones are sent as they are, as by the middleware that compresses all other answers. */
const LEAST_COMPRESSED = 1024;

export function answerOf(json: string): Answer {
  const body = Buffer.allocUnsafeSlow(Buffer.byteLength(json));
  body.write(json);
  const etag = `W/"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
  return { body, isCompressed: false, length: body.length, etag };
}

export function isWorthCompressing({ isCompressed, length }: Answer): boolean {
  return !isCompressed && length >= LEAST_COMPRESSED;
}

export async function compressedAnswer(answer: Answer): Promise<Answer> {
  const compressed = await promisify(gzip)(answer.body);
  const body = Buffer.allocUnsafeSlow(compressed.length);
  compressed.copy(body);
  return { ...answer, body, isCompressed: true };
}

/** The JSON, for a client that does not take gzip. */
export async function plainBody({ body, isCompressed }: Answer): Promise<Buffer> {
  return isCompressed ? promisify(gunzip)(body) : body;
}

/** `gzip` without a weight; nearly all clients send it so, and the others get what the application's middleware makes of theirs. */
const GZIP = /(?:^|,)[ \t]*gzip[ \t]*(?:,|$)/i;

/** Whether the client takes gzip, as far as that can be seen at once. */
export function takesGzip(headers: IncomingHttpHeaders): boolean {
  return GZIP.test(String(headers['accept-encoding'] ?? ''));
}
