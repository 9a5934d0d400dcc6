/** How a statement can fail: ClickHouse refuses it, nothing answers, or something else does. */
import { ClickHouseError, extractErrorAtTheEndOfChunk } from '@clickhouse/client';
import { errors } from 'undici';

/** Errors of undici in our own words; those of the system, such as ECONNREFUSED, say enough and have a code. */
export function failureOf(error: unknown, timeoutMs: number): unknown {
  if (
    error instanceof errors.HeadersTimeoutError ||
    error instanceof errors.BodyTimeoutError ||
    error instanceof errors.ConnectTimeoutError
  ) {
    return unanswered(`no answer within ${timeoutMs} ms`, 'ETIMEDOUT', error);
  }
  if (error instanceof errors.SocketError) {
    return unanswered('the connection was lost before the answer was complete', 'ECONNRESET', error);
  }
  return error;
}

/** @param code that of the system for the same failure */
function unanswered(message: string, code: string, cause: Error): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

export function isLostConnection(error: unknown): boolean {
  return error instanceof errors.SocketError || systemCodeOf(error) === 'ECONNRESET';
}

/** Of the system, before a connection stands. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Whether the server cannot have seen anything of the request. */
export function isNoConnection(error: unknown): boolean {
  if (error instanceof errors.ConnectTimeoutError) return true;
  if (error instanceof AggregateError) return error.errors.every(isNoConnection);
  return NO_CONNECTION.has(systemCodeOf(error));
}

function systemCodeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

const EXCEPTION_TAG = 'x-clickhouse-exception-tag';

/**
 * The exception at the end of an answer that began with status 200; undefined when there is none.
 * Source: ClickHouse documentation, "HTTP interface", "HTTP response codes caveats".
 */
export function exceptionIn(
  answer: Buffer,
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Error | undefined {
  const tag = headers[EXCEPTION_TAG];
  if (typeof tag !== 'string' || !answer.subarray(-100).toString('latin1').endsWith(`${tag}\r\n__exception__\r\n`)) {
    return undefined;
  }
  return extractErrorAtTheEndOfChunk(answer, tag);
}

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

/** Codes of limits that the statement itself has met. Source: ClickHouse src/Common/ErrorCodes.cpp. */
const LIMIT_ERRORS: ReadonlySet<string> = new Set([
  '159', // TIMEOUT_EXCEEDED
  '241', // MEMORY_LIMIT_EXCEEDED
]);

/** Whether the server gave up because the statement takes too long or too much memory. */
export function isStatementLimit(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && LIMIT_ERRORS.has(error.code);
}

/** @param code as text, of ClickHouse src/Common/ErrorCodes.cpp */
export function hasCode(error: unknown, code: string): error is ClickHouseError {
  return error instanceof ClickHouseError && error.code === code;
}

/** ACCESS_DENIED. Source: ClickHouse src/Common/ErrorCodes.cpp. */
const ACCESS_DENIED = '497';

/** Whether the user lacks a right. */
export function isAccessDenied(error: unknown): error is ClickHouseError {
  return hasCode(error, ACCESS_DENIED);
}

/** UNKNOWN_TABLE and UNKNOWN_DATABASE. Source: ClickHouse src/Common/ErrorCodes.cpp. */
const MISSING_ERRORS: ReadonlySet<string> = new Set(['60', '81']);

/** Whether the table, or its database, does not exist. */
export function isMissing(error: unknown): error is ClickHouseError {
  return error instanceof ClickHouseError && MISSING_ERRORS.has(error.code);
}

/** `refused`: ClickHouse answers, with an error. `foreign`: something else answers. `away`: nothing does. */
export type ClickHouseFailure = 'refused' | 'foreign' | 'away';

/** What kind of failure a statement of a warehouse ended with. */
export function clickHouseFailureKind(error: unknown): ClickHouseFailure {
  if (error instanceof ClickHouseError) return 'refused';
  // A failure to answer has a code; an answer that ClickHouse would not give becomes an error that has none.
  return typeof error === 'object' && error !== null && 'code' in error ? 'away' : 'foreign';
}
