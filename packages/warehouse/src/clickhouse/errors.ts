/** Classifies the failures of statements: ClickHouse rejects the statement, there is no response, or something else responds. */
import { ClickHouseError } from '@clickhouse/client';

/** Rewrites failures of the client and of Node's streams with clear messages. System errors such as ECONNREFUSED stay as they are. */
export function failureOf(error: unknown, timeoutMs: number): unknown {
  // The client's timeout error has no code.
  if (error instanceof Error && error.message === 'Timeout error.') {
    return noResponse(`no response within ${timeoutMs} ms`, 'ETIMEDOUT', error);
  }
  if (isLostConnection(error)) {
    return noResponse('the connection was lost before the response was complete', 'ECONNRESET', error);
  }
  // The client throws a plain Error for a status of 400 or more whose body is not from ClickHouse, such as one of a proxy.
  const isForeign = error instanceof Error && error.name === 'Error' && codeOf(error) === undefined;
  return isForeign ? new ForeignResponse(error.message.slice(0, LONGEST_RESPONSE), { cause: error }) : error;
}

/** Maximum length of a response quoted in an error message, in characters. */
export const LONGEST_RESPONSE = 500;

/** @param code the system error code for the same failure */
export function noResponse(message: string, code: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

const LOST_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

export function isLostConnection(error: unknown): boolean {
  return LOST_CONNECTION.has(codeOf(error));
}

/** System error codes of failures before a connection is established. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Whether the request certainly did not reach the server. */
export function isNoConnection(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isNoConnection);
  return NO_CONNECTION.has(codeOf(error));
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

/** Matches error codes of ClickHouse. Source: src/Common/ErrorCodes.cpp. */
function hasCode(...codes: readonly string[]) {
  return (error: unknown): error is ClickHouseError => error instanceof ClickHouseError && codes.includes(error.code);
}

/**
 * Whether the server rejected the content of the rows, so that a retry with the same rows cannot succeed. Other errors are worth a retry:
 * network, memory, too many parts, a missing table or a full disk may recover. So may parse errors (6, 33, 117): a request that was damaged
 * in transit also causes them.
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

/** The memory limit of the whole server or of all of a user's statements. Source: ClickHouse, src/Common/MemoryTracker.cpp. */
const SHARED_MEMORY = /\(total\)|\(for user\)|User memory/;

/** Whether the statement exceeded its own limits, so that a smaller one may succeed. */
export function isStatementLimit(error: unknown): error is ClickHouseError {
  return isLimit(error) && !(error.code === '241' && SHARED_MEMORY.test(error.message));
}

export const isAccessDenied = hasCode('497' /* ACCESS_DENIED */);

/** Whether the server does not know one of our settings, or the user may not set it. */
export const isSettingRejected = hasCode(
  '115' /* UNKNOWN_SETTING */,
  '164' /* READONLY */,
  '452' /* SETTING_CONSTRAINT_VIOLATION */,
);

export const isMissing = hasCode('60' /* UNKNOWN_TABLE */, '81' /* UNKNOWN_DATABASE */);

/** Thrown for a response that does not come from ClickHouse, such as the page of a proxy. */
export class ForeignResponse extends Error {
  override readonly name = 'ForeignResponse';
}

/** Thrown if the server's version or the user's profile would make results wrong. The message says what to change. */
export class UnfitServer extends Error {
  override readonly name = 'UnfitServer';
}

/** Recognized by name: some of Node's own errors of these classes have a `code`, like connection failures. */
const DEFECTS: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'ZodError']);

/**
 * Classifies a failed statement. The first kind means that ClickHouse responded with an error. `unfit`: its version is too old, or the user
 * may not set a required setting. `foreign`: something other than ClickHouse responded. `away`: there was no response. `defect`: a bug of
 * ours.
 */
export function clickHouseFailureKind(error: unknown): 'rejected' | 'unfit' | 'foreign' | 'away' | 'defect' {
  if (error instanceof ClickHouseError) return 'rejected';
  if (error instanceof UnfitServer) return 'unfit';
  if (error instanceof ForeignResponse) return 'foreign';
  const isDefect = codeOf(error) === undefined || (error instanceof Error && DEFECTS.has(error.name));
  return isDefect ? 'defect' : 'away';
}
