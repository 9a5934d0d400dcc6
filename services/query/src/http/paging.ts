/**
 * Signs and verifies cursors, and paginates the lists of the management API. A cursor contains the position where a list continues. Its
 * signature prevents clients from forging a cursor, or using it for another query. Format: base64url(payload) "." base64url(HMAC-SHA256 of
 * the encoded payload). Source: docs/api-contract.md, "Pages".
 */
import { createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { QueryParameters } from '@meterline/api/http/query-parameters';
import {
  type ApiVersion,
  DEFAULT_LIST_PAGE,
  DEFAULT_LIST_SORT,
  hasPaginatedLists,
  MS_PER_DAY,
  PAGINATED_LISTS_SINCE,
  parseJson,
} from '@meterline/catalog';
import { z } from 'zod';
import { cursorExpired, invalidCursor } from './errors.js';

const LIFETIME_MS = MS_PER_DAY;
/** A signature has 256 bits, which are 43 characters of base64url. */
const CURSOR = /^([A-Za-z0-9_-]+)\.([A-Za-z0-9_-]{43})$/;

/** The values that must be the same for all pages of a list, such as the operation, the owner, and every parameter except the page size. */
export type CursorBinding = readonly unknown[];

const payload = z.object({ issuedAt: z.number(), binding: z.string(), position: z.unknown() });

export class CursorCodec {
  readonly #secret: string;
  readonly #clock: () => Date;

  constructor(secret: string, clock: () => Date) {
    this.#secret = secret;
    this.#clock = clock;
  }

  /** @param issuedAt when the cursor's lifetime of 24 hours starts, in epoch milliseconds */
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
   * Returns the position in a cursor that was issued for this binding within the last 24 hours.
   * @throws ApiError `invalid_cursor`, `cursor_expired`
   */
  open<Position extends z.ZodType>(cursor: string, binding: CursorBinding, position: Position): z.output<Position> {
    const [, text, signature] = CURSOR.exec(cursor) ?? [];
    // Compare the encoded strings, because different base64url strings can decode to the same bytes.
    if (!text || !signature || !timingSafeEqual(Buffer.from(signature), Buffer.from(this.#sign(text)))) {
      throw invalidCursor();
    }
    // The signature is valid, but the cursor may come from another release with another payload format.
    const content = payload.safeParse(parseJson(Buffer.from(text, 'base64url').toString()));
    if (!content.success || content.data.binding !== digest(binding)) throw invalidCursor();
    if (this.#clock().getTime() - content.data.issuedAt > LIFETIME_MS) throw cursorExpired();
    const parsed = position.safeParse(content.data.position);
    if (!parsed.success) throw invalidCursor();
    return parsed.data;
  }

  #sign(text: string): string {
    return createHmac('sha256', this.#secret).update(text).digest('base64url');
  }
}

function digest(binding: CursorBinding): string {
  return createHash('sha256').update(JSON.stringify(binding)).digest('base64url');
}

interface ListParameters {
  readonly limit: z.ZodType<number>;
  readonly cursor: z.ZodType<string>;
  readonly sort: z.ZodType<string>;
  /** Only lists with the parameter `account` have this schema. All API versions accept the parameter. */
  readonly account?: z.ZodType<string>;
}

export interface ListRequest {
  readonly account: string | undefined;
  readonly sort: string;
  /** Undefined for API versions without pagination. */
  readonly page: { readonly limit: number; readonly cursor: string } | undefined;
}

/** The fields that lists are sorted by. An entry without a date counts as the oldest. */
export interface ListEntry {
  /** Omitted if the name identifies the entry. */
  readonly id?: string;
  readonly name?: string;
  readonly createdAt?: string;
}

const SINCE = `send the header Svc-Version: ${PAGINATED_LISTS_SINCE}, the first version with pages and an order`;

export function parseListRequest(
  rawQuery: string,
  version: ApiVersion,
  schemas: ListParameters,
  ignored: readonly string[] = [],
): ListRequest {
  const isPaginated = hasPaginatedLists(version);
  const names = Object.keys(schemas).filter((name) => isPaginated || name === 'account');
  const unsupported = Object.fromEntries(Object.keys(schemas).map((name) => [name, SINCE]));
  const parameters = new QueryParameters(rawQuery, { names, mayBeEmpty: ['cursor'], ignored, unsupported });
  const account = schemas.account && parameters.optional('account', schemas.account);
  const limit = parameters.optional('limit', schemas.limit) ?? DEFAULT_LIST_PAGE;
  const cursor = parameters.optional('cursor', schemas.cursor) ?? '';
  const sort = parameters.optional('sort', schemas.sort) ?? DEFAULT_LIST_SORT;
  if (!parameters.areValid) throw parameters.error();
  return { account, sort, page: isPaginated ? { limit, cursor } : undefined };
}

/**
 * Returns a list, or one page of it in API versions with pagination.
 * @param list the operation and the owner of the list. A cursor is valid only for the list that it was issued for.
 * @throws ApiError `invalid_cursor`, `cursor_expired`
 */
export function listResponse<Entry extends ListEntry>(
  entries: readonly Entry[],
  { sort, page }: ListRequest,
  list: CursorBinding,
  cursors: CursorCodec,
) {
  const sorted = [...entries].sort((a, b) => comparePositions(positionOf(a, sort), positionOf(b, sort), sort));
  if (!page) return sorted;
  const binding = [...list, sort];
  const after = page.cursor === '' ? undefined : cursors.open(page.cursor, binding, listPosition);
  const rest = after ? sorted.filter((entry) => comparePositions(positionOf(entry, sort), after, sort) > 0) : sorted;
  const data = rest.slice(0, page.limit);
  const last = data.at(-1);
  const hasMore = rest.length > data.length;
  const nextCursor = hasMore && last ? cursors.issue(binding, positionOf(last, sort)) : '';
  return { data, meta: { hasMore, nextCursor, total: sorted.length } };
}

const listPosition = z.object({ key: z.string(), id: z.string() });
type ListPosition = z.output<typeof listPosition>;

function positionOf({ name = '', id = name, createdAt }: ListEntry, sort: string): ListPosition {
  return { key: (sort.startsWith('name') ? name : createdAt) ?? '', id };
}

function comparePositions(a: ListPosition, b: ListPosition, sort: string): number {
  const byKey = compareText(a.key, b.key);
  return (sort.endsWith(':desc') ? -byKey : byKey) || compareText(a.id, b.id);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
