import { ClickHouseError } from '@clickhouse/client';

/**
 * ClickHouse error codes that say "these rows cannot be stored, however often you try".
 * Everything else (network, memory, too many parts, a missing table, a full disk) may pass and is worth a retry.
 * Source: ClickHouse src/Common/ErrorCodes.cpp.
 */
const CONTENT_ERRORS: ReadonlySet<string> = new Set([
  '6', // CANNOT_PARSE_TEXT
  '69', // ARGUMENT_OUT_OF_BOUND
  '117', // INCORRECT_DATA
  '131', // TOO_LARGE_STRING_SIZE
  '407', // DECIMAL_OVERFLOW
  '469', // VIOLATED_CONSTRAINT
]);

/** Whether the server refused the rows themselves; trying the same rows again cannot help. */
export function isContentError(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && CONTENT_ERRORS.has(error.code);
}
