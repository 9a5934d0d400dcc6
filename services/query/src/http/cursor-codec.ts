/**
 * Cursors: the position where a list continues, signed so that nobody can forge one or use it for another question.
 * Text: base64url(payload) "." base64url(HMAC-SHA256 of the payload's text). Source: DESIGN section 6, "Paging".
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { MS_PER_DAY, parseJson } from '@meterline/catalog';
import { z } from 'zod';
import { cursorExpired, invalidCursor } from './errors.js';

const LIFETIME_MS = MS_PER_DAY;
/** 256 bits are 43 characters of base64url. */
const CURSOR = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

/** Everything that the pages of one list have in common: operation, caller, and every parameter but the page size. */
export type CursorBinding = readonly unknown[];

const payload = z.object({ issuedAt: z.number(), binding: z.string(), position: z.unknown() });

export class CursorCodec {
  readonly #secret: string;
  readonly #clock: () => Date;

  constructor(secret: string, clock: () => Date) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /**
   * @param position the place of the page's last item; must survive JSON
   * @param issuedAt when its 24 hours begin, in epoch milliseconds
   */
  issue(binding: CursorBinding, position: unknown, issuedAt = this.#clock().getTime()): string {
    const content: z.input<typeof payload> = {
      issuedAt,
      binding: digest(binding),
      position,
    };
    const text = Buffer.from(JSON.stringify(content)).toString('base64url');
    return `${text}.${this.#sign(text)}`;
  }

  /**
   * The position in a cursor that was issued for this binding at most 24 hours ago.
   * @throws ApiError `invalid_cursor`, `cursor_expired`
   */
  open<Position extends z.ZodType>(cursor: string, binding: CursorBinding, position: Position): z.output<Position> {
    const [, text, signature] = CURSOR.exec(cursor) ?? [];
    // The texts are compared, not the bytes: base64url has more than one spelling for the same bytes.
    if (!text || !signature || !timingSafeEqual(Buffer.from(signature), Buffer.from(this.#sign(text)))) {
      throw invalidCursor();
    }
    // It is one of ours, but may be of another release, whose content had another shape.
    const content = payload.safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
    if (!content.success || content.data.binding !== digest(binding)) throw invalidCursor();
    if (this.#clock().getTime() - content.data.issuedAt > LIFETIME_MS) throw cursorExpired();
    const place = position.safeParse(content.data.position);
    if (!place.success) throw invalidCursor();
    return place.data;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

function digest(binding: CursorBinding): string {
  return createHash('sha256').update(JSON.stringify(binding)).digest('base64url');
}
