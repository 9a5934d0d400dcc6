/** Reads the body of a request into memory that is bounded whatever the client does. */
import type { IncomingMessage } from 'node:http';
import { ClientGone } from '@meterline/api';
import type { Holding } from '../bytes-under-way.js';
import { bodyTooLarge, MAX_BODY_BYTES } from './limits.js';

const FIRST_BYTES = 8 * 1024;

/**
 * Copies what arrives into one buffer that grows: a client may send a byte at a time, and each piece that were kept would
 * keep the whole read that it came with.
 * @param holding takes as much as the buffer has
 * @throws ApiError `body_too_large`, `server_busy`, `too_much_under_way`; ClientGone
 */
export async function readBody(request: IncomingMessage, holding: Holding): Promise<Buffer> {
  const announced = Number(request.headers['content-length'] ?? 0);
  if (announced > MAX_BODY_BYTES) throw bodyTooLarge();
  let buffer = Buffer.alloc(0);
  let bytes = 0;
  const append = (chunk: Buffer) => {
    const needed = bytes + chunk.length;
    if (needed > MAX_BODY_BYTES) throw bodyTooLarge();
    if (needed > buffer.length) {
      // What is announced is the end of growing, not its beginning: it may never come.
      const most = announced > 0 ? announced : MAX_BODY_BYTES;
      const size = Math.max(needed, Math.min(most, Math.max(FIRST_BYTES, 2 * buffer.length)));
      holding.take(size - buffer.length);
      const grown = Buffer.allocUnsafeSlow(size);
      buffer.copy(grown, 0, 0, bytes);
      buffer = grown;
    }
    chunk.copy(buffer, bytes);
    bytes = needed;
  };
  await new Promise<void>((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      try {
        append(chunk);
      } catch (error) {
        // The rest is read and dropped, so that the client gets its answer.
        request.off('data', onData).resume();
        reject(error);
      }
    };
    const onEnd = () => {
      request.off('close', onGone);
      resolve();
    };
    const onGone = () => reject(new ClientGone());
    request.on('data', onData).once('end', onEnd).once('close', onGone).once('error', onGone);
  });
  return buffer.subarray(0, bytes);
}
