/** From a request to its checked events. Of a body that is large, each event is checked while the rest still arrives. */
import type { IncomingMessage } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type { PriceBook } from '@meterline/catalog';
import type { Holding } from '../bytes-under-way.js';
import { ArrivingBody, checkWhole } from './arriving-body.js';
import { BodyReader, PIECE_BYTES } from './body.js';
import { decodeBody, decodedPieces, type Encoding, piecesOf, prepareZstd } from './decoding.js';
import type { Format } from './formats.js';
import { bodyTooLarge, MAX_BODY_BYTES } from './limits.js';
import type { UsualEvents } from './usual-events.js';

/** What a request says of its body. */
export interface Sent {
  readonly account: string;
  readonly encoding: Encoding;
  readonly format: Format;
}

export interface ReadRules {
  readonly book: PriceBook;
  readonly clock: () => Date;
  readonly usual: UsualEvents;
}

/** What the result of an event takes in memory: a refused event may be three bytes. */
const RESULT_BYTES = 256;

/**
 * @param holding holds what is in memory for the request, when this has ended too
 * @returns the events, and the length of their text
 * @throws ApiError for a body that is none, as docs/decisions/0027 says, or that there is no room for; ClientGone
 */
export async function readAndCheck(request: IncomingMessage, holding: Holding, sent: Sent, rules: ReadRules) {
  const { account, encoding, format } = sent;
  const { book, clock, usual } = rules;
  const check = () => ({ account, book, now: clock().getTime() });
  const bodyRules = { format, headers: request.headers, usual, check };
  // zstd's decoder knows no pieces.
  const body = new BodyReader(request, holding, encoding === 'zstd' ? MAX_BODY_BYTES + 1 : PIECE_BYTES);
  try {
    const first = await body.next();
    if (encoding === 'zstd') await prepareZstd();
    const whole = body.isOver ? decodeBody(first, encoding) : undefined;
    // Decoded, many small bodies can be more than there is room for: while Redis is slow they wait together.
    if (whole) holding.resize(whole.length);
    if (whole && whole.length <= PIECE_BYTES) {
      return { checked: checkWhole(whole, bodyRules), bytes: whole.length };
    }
    const arriving = new ArrivingBody(bodyRules);
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
      arriving.push(piece);
      hold(arriving.checked.results.count * RESULT_BYTES);
      // Others are answered in between.
      await nextTurn();
    }
    arriving.end();
    holding.resize(held);
    return { checked: arriving.checked, bytes };
  } finally {
    // Of a good body, too, something may still come: gunzip ends at zeros after its stream.
    body.drop();
  }
}

async function* all(first: Buffer, body: BodyReader): AsyncGenerator<Buffer> {
  yield first;
  yield* body;
}
