/** Splits lists of accounts, because ClickHouse rejects parameters above 128 KiB (http_max_field_value_size). */

/** Maximum size of one part, measured with {@link listedBytes}. */
export const MAX_LIST_BYTES = 120_000;
/** Size of a list item without the account ID: a time, quotes, brackets and commas. */
const ITEM_BYTES = 30;
/** Each byte of an account ID may need a backslash before it. */
const BYTES_PER_ACCOUNT_BYTE = 2;

export function listedBytes(accountId: string): number {
  return ITEM_BYTES + BYTES_PER_ACCOUNT_BYTE * Buffer.byteLength(accountId);
}

/** Splits a list into parts of at most `limit`. A single item above the limit becomes a part of its own. */
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
