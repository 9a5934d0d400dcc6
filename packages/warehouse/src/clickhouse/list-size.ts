/** Divides the lists of accounts that statements have as parameters: ClickHouse rejects a parameter of more than 128 KiB (http_max_field_value_size). */

/** The most bytes of such a list, by {@link listedBytes}. */
export const MAX_LIST_BYTES = 120_000;
/** The bytes of an item beside its account ID: the time, quotes, brackets and commas. */
const ITEM_BYTES = 30;
/** A quote in an account ID gets a backslash. */
const BYTES_PER_ACCOUNT_BYTE = 2;

/** The most bytes that an account takes in a list, alone or with a time. */
export function listedBytes(accountId: string): number {
  return ITEM_BYTES + BYTES_PER_ACCOUNT_BYTE * Buffer.byteLength(accountId);
}

/** In their order, each part as large as the limit allows, with at least one item. */
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
