/** How a statement can fail: ClickHouse refuses it, nothing responds, or something else does. */
import { ClickHouseError } from '@clickhouse/client';

/** Failures of the client and of Node's streams in our own words; those of the system, such as ECONNREFUSED, say enough. */
export function failureOf(error: unknown, timeoutMs: number): unknown {
  // The client gives it no code.
  if (error instanceof Error && error.message === 'Timeout error.') {
    return noResponse(`no response within ${timeoutMs} ms`, 'ETIMEDOUT', error);
  }
  if (isLostConnection(error)) {
    return noResponse('the connection was lost before the response was complete', 'ECONNRESET', error);
  }
  // The client's form of a status of 400 or more whose text is not ClickHouse's: a proxy answers.
  const isForeign = error instanceof Error && error.name === 'Error' && codeOf(error) === undefined;
  return isForeign ? new ForeignResponse(error.message.slice(0, LONGEST_RESPONSE), { cause: error }) : error;
}

/** Characters of a response that an error shows. */
export const LONGEST_RESPONSE = 500;

/** @param code the system's code for the same failure */
export function noResponse(message: string, code: string, cause: unknown): Error {
  return Object.assign(new Error(message, { cause }), { code });
}

const LOST_CONNECTION: ReadonlySet<unknown> = new Set(['ECONNRESET', 'EPIPE', 'ERR_STREAM_PREMATURE_CLOSE']);

export function isLostConnection(error: unknown): boolean {
  return LOST_CONNECTION.has(codeOf(error));
}

/** The system's codes for failures before a connection stands. */
const NO_CONNECTION: ReadonlySet<unknown> = new Set([
  'ECONNREFUSED',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
]);

/** Whether the server cannot have seen anything of the request. */
export function isNoConnection(error: unknown): boolean {
  if (error instanceof AggregateError) return error.errors.every(isNoConnection);
  return NO_CONNECTION.has(codeOf(error));
}

function codeOf(error: unknown): unknown {
  return typeof error === 'object' && error !== null && 'code' in error ? error.code : undefined;
}

/** Codes of ClickHouse. Source: src/Common/ErrorCodes.cpp. */
function hasCode(...codes: readonly string[]) {
  return (error: unknown): error is ClickHouseError => error instanceof ClickHouseError && codes.includes(error.code);
}

/**
 * Whether the server refused the rows themselves; trying the same rows again cannot help. Everything else (network, memory, too many parts,
 * a missing table, a full disk) may pass and is worth a retry, and so are errors of parsing (6, 33, 117): a request that was damaged on its
 * way looks like that too.
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

/** The memory of the whole server or of a user's other statements. Source: ClickHouse, src/Common/MemoryTracker.cpp. */
const SHARED_MEMORY = /\(total\)|\(for user\)|User memory/;

/** Whether the statement exceeded a limit of its own. A smaller one may succeed. */
export function isStatementLimit(error: unknown): error is ClickHouseError {
  return isLimit(error) && !(error.code === '241' && SHARED_MEMORY.test(error.message));
}

/** Whether the user lacks a right. */
export const isAccessDenied = hasCode('497' /* ACCESS_DENIED */);

/** Whether the user may not set what every statement sets, or the server does not know it. */
export const isSettingRefused = hasCode(
  '115' /* UNKNOWN_SETTING */,
  '164' /* READONLY */,
  '452' /* SETTING_CONSTRAINT_VIOLATION */,
);

/** Whether the table, or its database, does not exist. */
export const isMissing = hasCode('60' /* UNKNOWN_TABLE */, '81' /* UNKNOWN_DATABASE */);

/** A response that ClickHouse would not give, such as the page of a proxy. */
export class ForeignResponse extends Error {
  override readonly name = 'ForeignResponse';
}

/** ClickHouse answers, but its version or the user's profile would make results wrong; the message says what to change. */
export class UnfitServer extends Error {
  override readonly name = 'UnfitServer';
}

/** By name: Node's own have codes, as failures of connections do. */
const DEFECTS: ReadonlySet<string> = new Set(['TypeError', 'RangeError', 'ReferenceError', 'SyntaxError', 'ZodError']);

/**
 * What kind of failure a statement of a warehouse ended with. `refused`: ClickHouse responds, with an error. `unfit`: it is too old,
 * or the user may not set what is needed. `foreign`: something other than ClickHouse responded. `away`: no response. `defect`: a bug of ours.
 */
export function clickHouseFailureKind(error: unknown): 'refused' | 'unfit' | 'foreign' | 'away' | 'defect' {
  if (error instanceof ClickHouseError) return 'refused';
  if (error instanceof UnfitServer) return 'unfit';
  if (error instanceof ForeignResponse) return 'foreign';
  const isDefect = codeOf(error) === undefined || (error instanceof Error && DEFECTS.has(error.name));
  return isDefect ? 'defect' : 'away';
}
