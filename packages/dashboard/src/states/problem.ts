/** Decides which failed requests the page retries, and describes failures for the user. */
import { backOffMs, isAwayStatus } from '@meterline/catalog/plain';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { accountLabel } from '../view/view.js';

const BACK_OFF = { firstMs: 1_000, longestMs: 15_000 };
/** A user waits for an export. An export therefore fails after a few retries, or immediately if the wait would be long. */
const EXPORT_RETRIES = 4;
const LONGEST_EXPORT_WAIT_MS = 60_000;

/** The limit of stored groups may last a day, so a retry does not help. The API's message says when it ends and what to do instead. */
const TOO_MANY_GROUPS = 'too_many_stored_groups';

/**
 * Returns whether to retry. While the service is unavailable, fails or limits requests, the page retries forever and keeps the last data on
 * the screen. The page retries instead of the client, so that it can show the reason. Only reads are retried.
 */
export function shouldRetry(error: Error): boolean {
  if (error instanceof MeterlineError)
    return error.code !== TOO_MANY_GROUPS && (error.status === 429 || isAwayStatus(error.status));
  return error instanceof MeterlineConnectionError;
}

export function shouldRetryExport(failures: number, error: Error): boolean {
  return failures < EXPORT_RETRIES && shouldRetry(error) && retryDelay(failures, error) <= LONGEST_EXPORT_WAIT_MS;
}

/** Returns the delay in milliseconds: `Retry-After`, or else a back-off without jitter, because the page shows a countdown. */
export function retryDelay(failures: number, error: Error): number {
  const requested = error instanceof MeterlineError ? error.retryAfter : undefined;
  return requested === undefined ? backOffMs(failures, BACK_OFF, 1) : requested * 1_000;
}

export interface Problem {
  readonly title: string;
  readonly text: string;
  readonly canRetry: boolean;
  readonly requestId?: string | undefined;
}

export function problemOf(error: Error, account: string): Problem {
  if (!(error instanceof MeterlineError))
    return { title: 'Something went wrong on this page', text: error.message, canRetry: true };
  return { ...problemOfResponse(error, account), requestId: error.requestId };
}

function problemOfResponse(error: MeterlineError, account: string): Problem {
  const { code, message, details, status } = error;
  if (code === 'insufficient_scope')
    return { title: 'This token cannot read billing data', text: message, canRetry: false };
  if (status === 403) {
    const reasons = details.map((detail) => detail['message'] ?? '').join(' ');
    const text = reasons || 'The account does not exist, or your key does not have access to it.';
    const advice =
      'Choose another account above, ask an admin of this account to add you, or sign in with another key.';
    return { title: `You don’t have access to ${accountLabel(account)}`, text: `${text} ${advice}`, canRetry: false };
  }
  if (isCursorExpired(error)) {
    return { title: 'This list has expired', text: 'Try again to load the current list.', canRetry: true };
  }
  return { title: 'The service rejected the request', text: message, canRetry: code === TOO_MANY_GROUPS };
}

/** Returns whether the cursor of a list is no longer valid. The page must then read the list again from its first page. */
export function isCursorExpired(error: Error | null): boolean {
  return error instanceof MeterlineError && (error.code === 'cursor_expired' || error.code === 'invalid_cursor');
}

/** Describes why a sign-in failed. If the key or token was rejected, uses the API's message, which has the reason, such as the expiry. */
export function signInProblem(error: unknown): string {
  if (error instanceof MeterlineError && error.status === 401) return error.message;
  if (error instanceof MeterlineError)
    return `${error.message} (${error.status}, request ID ${error.requestId ?? 'unknown'})`;
  if (error instanceof MeterlineConnectionError)
    return `${UNREACHABLE} Check your connection, and that the service is running.`;
  // Any other error is from the client, which rejects keys and tokens with invalid characters before it sends anything.
  return 'This is not a valid API key or access token. It contains characters that are not allowed.';
}

const UNREACHABLE = 'The service is unreachable.';

export function waitingText(error: Error): string {
  if (!(error instanceof MeterlineError)) return UNREACHABLE;
  if (error.status === 429) return 'Too many requests.';
  return `The service returned an error (${error.status}, request ID ${error.requestId ?? 'unknown'}).`;
}

/** Formats a wait, such as `in 7 s` or `in 60 minutes`. */
export function waitText(seconds: number): string {
  return seconds > 120 ? `in ${Math.ceil(seconds / 60)} minutes` : `in ${seconds} s`;
}
