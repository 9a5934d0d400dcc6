/**
 * Splits lists of accounts into parts that fit a statement's parameter: ClickHouse rejects parameters above 128 KiB
 * (http_max_field_value_size).
 */

/** Maximum size of such a list in bytes, as estimated by {@link listedBytes}. */
export const MAX_LIST_BYTES = 120_000;
/** Bytes of an item besides its account ID: the time, quotes, brackets and commas. */
const ITEM_BYTES = 30;
/** Each byte of an account ID may need a backslash. */
const BYTES_PER_ACCOUNT_BYTE = 2;

/** Returns the maximum size of an account in a list, with or without a time. */
export function listedBytes(accountId: string): number {
  return ITEM_BYTES + BYTES_PER_ACCOUNT_BYTE * Buffer.byteLength(accountId);
}

/** Splits items in order into parts that are as large as the limit allows. A part has at least one item. */
export function* inParts<Item>(
  items: readonly Item[],
  sizeOf: (item: Item) => number,
  limit = MAX_LIST_BYTES,
): Generator<readonly Item[]> {
  let part: Item[] = [];
  let size = 0;
  for (const item of items) {
    const more = sizeOf(item);
    if (part.length > 0 && size + more > limit) {
      yield part;
      part = [];
      size = 0;
    }
    part.push(item);
    size += more;
  }
  if (part.length > 0) yield part;
}
