/** Reads the body of a request piece by piece, in memory that is bounded whatever the client does. */
import type { IncomingMessage } from 'node:http';
import { ClientGone } from '@meterline/api';
import type { Holding } from '../bytes-under-way.js';
import { bodyTooLarge, MAX_BODY_BYTES } from './limits.js';

/** A body that is no longer is read as a whole. */
export const PIECE_BYTES = 64 * 1024;
const FIRST_BYTES = 8 * 1024;
const NOTHING = Buffer.alloc(0);

/**
 * Copies what arrives into one buffer that grows: a client may send a byte at a time, and each piece that were kept would
 * keep the whole read that it came with. While nobody asks for more, nothing more is read.
 */
export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #holding: Holding;
  readonly #pieceBytes: number;
  readonly #announced: number;
  #buffer = NOTHING;
  #bytes = 0;
  #total = 0;
  #isOver = false;
  #failure: unknown;
  #asked: { readonly resolve: () => void; readonly reject: (error: unknown) => void } | undefined;

  /**
   * @param holding takes as much as the buffer has
   * @param pieceBytes a piece is at least so long, but for the last one
   * @throws ApiError `body_too_large`
   */
  constructor(request: IncomingMessage, holding: Holding, pieceBytes: number) {
    this.#announced = Number(request.headers['content-length'] ?? 0);
    if (this.#announced > MAX_BODY_BYTES) throw bodyTooLarge();
    this.#pieceBytes = pieceBytes;
    this.#request = request;
    this.#holding = holding;
    request.on('data', this.#onData).once('end', this.#onEnd).once('close', this.#onGone).once('error', this.#onGone);
  }

  /** Whether the piece that was read last is the end. */
  get isOver(): boolean {
    return this.#isOver;
  }

  /**
   * The next piece, which nobody else writes to. By asking for it the caller has done with the one before: that is no longer held.
   * @throws ApiError `body_too_large`, `server_busy`, `too_much_under_way`; ClientGone
   */
  async next(): Promise<Buffer> {
    this.#holding.give(this.#buffer.length);
    this.#buffer = NOTHING;
    this.#bytes = 0;
    if (this.#failure !== undefined) throw this.#failure;
    await new Promise<void>((resolve, reject) => {
      this.#asked = { resolve, reject };
      this.#request.resume();
    });
    return this.#buffer.subarray(0, this.#bytes);
  }

  /** All that is left. @throws as {@link next} */
  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    while (!this.#isOver) yield await this.next();
  }

  /** What is still to come is read and dropped, so that the client gets its answer, and the next one of the connection. */
  drop(): void {
    if (this.#isOver) return;
    this.#request.off('data', this.#onData).resume();
  }

  readonly #onData = (chunk: Buffer): void => {
    try {
      this.#append(chunk);
    } catch (error) {
      this.drop();
      this.#fail(error);
      return;
    }
    if (this.#bytes < this.#pieceBytes) return;
    this.#request.pause();
    this.#asked?.resolve();
  };

  #append(chunk: Buffer): void {
    this.#total += chunk.length;
    if (this.#total > MAX_BODY_BYTES) throw bodyTooLarge();
    const needed = this.#bytes + chunk.length;
    if (needed > this.#buffer.length) {
      // What is announced is the end of growing, not its beginning: it may never come.
      const left = this.#announced > 0 ? this.#announced - this.#total + needed : MAX_BODY_BYTES;
      const size = Math.max(needed, Math.min(left, this.#pieceBytes, Math.max(FIRST_BYTES, 2 * this.#buffer.length)));
      this.#holding.take(size - this.#buffer.length);
      const grown = Buffer.allocUnsafeSlow(size);
      this.#buffer.copy(grown, 0, 0, this.#bytes);
      this.#buffer = grown;
    }
    chunk.copy(this.#buffer, this.#bytes);
    this.#bytes = needed;
  }

  readonly #onEnd = (): void => {
    this.#isOver = true;
    this.#request.off('close', this.#onGone);
    this.#asked?.resolve();
  };

  readonly #onGone = (): void => this.#fail(new ClientGone());

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#asked?.reject(error);
  }
}
