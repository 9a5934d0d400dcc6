/** Classifies failed statements: ClickHouse rejected the statement, no response arrived, or something other than ClickHouse responded. */
import { ClickHouseError } from '@clickhouse/client';

/** Replaces unclear errors of the client and of Node's streams. System errors such as ECONNREFUSED stay as they are. */
export function failureOf(error: unknown, timeoutMs: number): unknown {
  // The client's timeout error has no code, so recognize it by its message.
  if (error instanceof Error && error.message === 'Timeout error.') {
    return noResponse(`no response within ${timeoutMs} ms`, 'ETIMEDOUT', error);
  }
  if (isLostConnection(error)) {
    return noResponse('the connection was lost before the response was complete', 'ECONNRESET', error);
  }
  // The client throws a plain Error if an error response does not come from ClickHouse but, for example, from a proxy.
  const isForeign = error instanceof Error && error.name === 'Error' && codeOf(error) === undefined;
  return isForeign ? new ForeignResponseError(error.message.slice(0, LONGEST_RESPONSE), { cause: error }) : error;
}

/** Maximum length of the part of a response that an error message quotes. */
export const LONGEST_RESPONSE = 500;

export function noResponse(message: string, code: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

const LOST_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

export function isLostConnection(error: unknown): boolean {
  return LOST_CONNECTION.has(codeOf(error));
}

const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Returns true if the request certainly did not reach the server. */
export function isNoConnection(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isNoConnection);
  return NO_CONNECTION.has(codeOf(error));
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

function hasCode(...codes: readonly string[]) {
  return (error: unknown): error is ClickHouseError => error instanceof ClickHouseError && codes.includes(error.code);
}

/**
 * Returns true if the server rejected the content of the rows, so that a retry with the same rows cannot succeed. All other errors are
 * worth a retry, because network, memory, too many parts, a missing table or a full disk may recover. Parse errors (6, 33, 117) are also
 * worth a retry, because a request that was damaged in transit causes them too. Source of the codes: ClickHouse, src/Common/ErrorCodes.cpp.
 */
export const isContentError = hasCode(
  '69' /* ARGUMENT_OUT_OF_BOUND */,
  '131' /* TOO_LARGE_STRING_SIZE */,
  '407' /* DECIMAL_OVERFLOW */,
  '469' /* VIOLATED_CONSTRAINT */,
);

const isLimit = hasCode(
  '158' /* TOO_MANY_ROWS */,
  '159' /* TIMEOUT_EXCEEDED */,
  '160' /* TOO_SLOW */,
  '191' /* SET_SIZE_LIMIT_EXCEEDED */,
  '241' /* MEMORY_LIMIT_EXCEEDED */,
  '307' /* TOO_MANY_BYTES */,
  '396' /* TOO_MANY_ROWS_OR_BYTES */,
);

/** Matches memory limits of the whole server, or of all statements of a user. Source: ClickHouse, src/Common/MemoryTracker.cpp. */
const SHARED_MEMORY = /\(total\)|\(for user\)|User memory/;

/** Returns true if the statement exceeded its own limits, so that a smaller statement may succeed. */
export function isStatementLimit(error: unknown): error is ClickHouseError {
  return isLimit(error) && !(error.code === '241' && SHARED_MEMORY.test(error.message));
}

export const isAccessDenied = hasCode('497' /* ACCESS_DENIED */);

export const isSettingRejected = hasCode(
  '115' /* UNKNOWN_SETTING */,
  '164' /* READONLY */,
  '452' /* SETTING_CONSTRAINT_VIOLATION */,
);

export const isMissing = hasCode('60' /* UNKNOWN_TABLE */, '81' /* UNKNOWN_DATABASE */);

export class ForeignResponseError extends Error {
  override readonly name = 'ForeignResponseError';
}

/** Thrown if the server's version or the settings of its user would make results wrong. The message says what to change. */
export class UnusableServerError extends Error {
  override readonly name = 'UnusableServerError';
}

/** Errors with these names are bugs, even if they have a `code` like a connection failure. Node throws such errors with a `code`, too. */
const DEFECTS: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'ZodError']);

/**
 * `rejected`: ClickHouse responded with an error. `unfit`: ClickHouse is too old, or the user may not change a required setting. `foreign`:
 * something other than ClickHouse responded. `away`: no response arrived. `defect`: the error is a bug in Meterline.
 */
export function clickHouseFailureKind(error: unknown): 'rejected' | 'unfit' | 'foreign' | 'away' | 'defect' {
  if (error instanceof ClickHouseError) return 'rejected';
  if (error instanceof UnusableServerError) return 'unfit';
  if (error instanceof ForeignResponseError) return 'foreign';
  const isDefect = codeOf(error) === undefined || (error instanceof Error && DEFECTS.has(error.name));
  return isDefect ? 'defect' : 'away';
}
