/** From a request to its checked events. Of a body that is large, each event is checked while the rest still arrives. */
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PriceBook } from '@meterline/catalog';
import type { Holding } from '../bytes-under-way.js';
import { type ArrivingEvents, arrivingEvents } from './arriving-events.js';
import { BodyReader, PIECE_BYTES } from './body.js';
import { CheckedEvents } from './check.js';
import { decodeBody, decodedPieces, type Encoding, piecesOf, TextPieces, textOf } from './decoding.js';
import { type Format, type Found, readEvents } from './formats.js';
import { bodyTooLarge, MAX_BODY_BYTES } from './limits.js';

/** What a request says of its body. */
export interface Sent {
  readonly account: string;
  readonly encoding: Encoding;
  readonly format: Format;
}

export interface ReadRules {
  readonly book: PriceBook;
  readonly clock: () => Date;
}

/** What the result of an event takes in memory: a refused event may be three bytes. */
const RESULT_BYTES = 256;

/**
 * @param holding holds what is in memory for the request, when this has ended too
 * @returns the events, and the length of their text
 * @throws ApiError for a body that is none, as docs/decisions/0027 says, or that there is no room for; ClientGone
 */
export async function readAndCheck(request: IncomingMessage, holding: Holding, sent: Sent, { book, clock }: ReadRules) {
  const { account, encoding, format } = sent;
  const { headers } = request;
  // zstd's decoder knows no pieces.
  const body = new BodyReader(request, holding, encoding === 'zstd' ? MAX_BODY_BYTES + 1 : PIECE_BYTES);
  const checked = new CheckedEvents();
  const check = (found: readonly Found[]) => checked.add(found, { account, book, now: clock().getTime() });

  try {
    const first = await body.next();
    const whole = body.isOver ? decodeBody(first, encoding) : undefined;
    // Decoded, many small bodies can be more than there is room for: while Redis is slow they wait together.
    if (whole) holding.resize(whole.length);
    if (whole && whole.length <= PIECE_BYTES) {
      check(readEvents(textOf(whole), format, account, headers));
      return { ...checked, bytes: whole.length };
    }
    const texts = new TextPieces();
    let events: ArrivingEvents | undefined;
    let bytes = 0;
    let held = whole?.length ?? 0;
    const hold = (needed: number) => {
      if (needed <= held) return;
      holding.take(needed - held);
      held = needed;
    };
    for await (const piece of whole ? piecesOf(whole) : decodedPieces(all(first, body), encoding)) {
      bytes += piece.length;
      if (bytes > MAX_BODY_BYTES) throw bodyTooLarge();
      hold(bytes);
      const text = texts.push(piece);
      events ??= arrivingEvents(text, format, account, headers);
      check(events.push(text));
      hold(checked.results.length * RESULT_BYTES);
      // Others are answered in between.
      await nextTurn();
    }
    texts.end();
    check(events?.end() ?? []);
    holding.resize(held);
    return { ...checked, bytes };
  } finally {
    // Of a good body, too, something may still come: gunzip ends at zeros after its stream.
    body.drop();
  }
}

async function* all(first: Buffer, body: BodyReader): AsyncGenerator<Buffer> {
  yield first;
  yield* body;
}
