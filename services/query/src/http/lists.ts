/**
 * Lists of the management API: everything at once at first, sorted and in pages since version 2026-04-28.
 * Source: the API specification, section "Limits".
 */
import { QueryParameters, refuseParameters, WORKSPACE_IGNORED } from '@meterline/api';
import { type ApiVersion, hasPaginatedLists, PAGINATED_LISTS_SINCE } from '@meterline/catalog';
import { DEFAULT_LIST_PAGE } from '@meterline/catalog/api';
import { z } from 'zod';
import type { CursorBinding, CursorCodec } from './cursor-codec.js';

/** The schemas of a list's parameters, and its orders; the first is the default. */
export interface ListRules<Sort extends string> {
  readonly parameters: {
    readonly limit: z.ZodType<number>;
    readonly cursor: z.ZodType<string>;
    readonly sort: z.ZodType<Sort>;
  };
  readonly sorts: readonly [Sort, ...Sort[]];
}

export interface ListRequest<Sort extends string> {
  readonly sort: Sort;
  /** Undefined before lists were paginated. */
  readonly page: { readonly limit: number; readonly cursor: string } | undefined;
}

/** What lists are sorted by. An entry without a date is older than all others. */
export interface ListEntry {
  readonly id: string;
  readonly name?: string;
  readonly createdAt?: string;
}

const SINCE = `send the header Svc-Version: ${PAGINATED_LISTS_SINCE}, the first version with pages and an order`;

/** @throws ApiError `invalid_parameter` with every fault */
export function parseListRequest<Sort extends string>(
  rawQuery: string,
  version: ApiVersion,
  { parameters: schemas, sorts }: ListRules<Sort>,
): ListRequest<Sort> {
  const names = Object.keys(schemas);
  if (!hasPaginatedLists(version)) {
    const unsupported = Object.fromEntries(names.map((name) => [name, SINCE]));
    refuseParameters(rawQuery, { ignored: WORKSPACE_IGNORED, unsupported });
    return { sort: sorts[0], page: undefined };
  }
  const parameters = new QueryParameters(rawQuery, { names, mayBeEmpty: ['cursor'], ignored: WORKSPACE_IGNORED });
  const limit = parameters.optional('limit', schemas.limit) ?? DEFAULT_LIST_PAGE;
  const cursor = parameters.optional('cursor', schemas.cursor) ?? '';
  const sort = parameters.optional('sort', schemas.sort) ?? sorts[0];
  if (!parameters.areValid) throw parameters.refusal();
  return { sort, page: { limit, cursor } };
}

/**
 * The answer to a request for a list.
 * @param entries in any order
 * @param list what the cursors are bound to besides the order: the operation, and whose list it is
 * @throws ApiError `invalid_cursor`, `cursor_expired`
 */
export function listAnswer<Entry extends ListEntry>(
  entries: readonly Entry[],
  { sort, page }: ListRequest<string>,
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

/** An entry's place in a sorted list. */
const listPosition = z.object({ key: z.string(), id: z.string() });
type ListPosition = z.output<typeof listPosition>;

function positionOf({ id, name, createdAt }: ListEntry, sort: string): ListPosition {
  return { key: (sort.startsWith('name') ? name : createdAt) ?? '', id };
}

/** By the asked key, in its direction, then by id. */
function comparePositions(a: ListPosition, b: ListPosition, sort: string): number {
  const byKey = compareText(a.key, b.key);
  return (sort.endsWith(':desc') ? -byKey : byKey) || compareText(a.id, b.id);
}

function compareText(a: string, b: string): number {
  if (a === b) return 0;
  return a < b ? -1 : 1;
}
