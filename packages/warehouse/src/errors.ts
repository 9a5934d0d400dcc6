import { ClickHouseError } from '@clickhouse/client';

/**
 * ClickHouse error codes that say "these rows cannot be stored, however often you try".
 * Everything else (network, memory, too many parts, a missing table, a full disk) may pass and is worth a retry, and so
 * are errors of parsing (6, 33, 117): a request that was damaged on its way looks like that too.
 * Source: ClickHouse src/Common/ErrorCodes.cpp.
 */
const CONTENT_ERRORS: ReadonlySet<string> = new Set([
  '69', // ARGUMENT_OUT_OF_BOUND
  '131', // TOO_LARGE_STRING_SIZE
  '407', // DECIMAL_OVERFLOW
  '469', // VIOLATED_CONSTRAINT
]);

/** Whether the server refused the rows themselves; trying the same rows again cannot help. */
export function isContentError(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && CONTENT_ERRORS.has(error.code);
}

/** `refused`: ClickHouse answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export type ClickHouseFailure = 'refused' | 'foreign' | 'away';

/** What kind of failure the client reports of a connection or a statement. */
export function clickHouseFailureKind(error: unknown): ClickHouseFailure {
  if (error instanceof ClickHouseError) return 'refused';
  // A failure of the system has a code; an answer without an exception of ClickHouse becomes an error that has none.
  return typeof error === 'object' && error !== null && 'code' in error ? 'away' : 'foreign';
}
