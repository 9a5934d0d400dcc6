/** Failures: whether the page tries again by itself, and what it shows. */
import { backOffMs, isAwayStatus } from '@meterline/catalog/plain';
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { accountName } from '../view/view.js';

const BACK_OFF = { firstMs: 1_000, longestMs: 15_000 };
/** A person waits for an export: they are told when it does not come, or not soon. */
const EXPORT_RETRIES = 4;
const LONGEST_EXPORT_WAIT_MS = 60_000;

/** There may be no room for a day; the message says when there is, and what to ask instead. */
const TOO_MANY_GROUPS = 'too_many_stored_groups';

/**
 * Whether the page tries again by itself: for as long as the service is away, fails or is busy. What was shown stays meanwhile. It does so
 * instead of the client, so that it can show what it waits for. All that it repeats are reads.
 */
export function shouldRetry(error: Error): boolean {
  if (error instanceof MeterlineError)
    return error.code !== TOO_MANY_GROUPS && (error.status === 429 || isAwayStatus(error.status));
  return error instanceof MeterlineConnectionError;
}

export function shouldRetryExport(failures: number, error: Error): boolean {
  return failures < EXPORT_RETRIES && shouldRetry(error) && retryDelay(failures, error) <= LONGEST_EXPORT_WAIT_MS;
}

/** Milliseconds: as long as the service asks for, or else without jitter, since the page counts them down. @param failures before this one */
export function retryDelay(failures: number, error: Error): number {
  const requested = error instanceof MeterlineError ? error.retryAfter : undefined;
  return requested === undefined ? backOffMs(failures, BACK_OFF, 1) : requested * 1_000;
}

export interface Problem {
  readonly title: string;
  readonly text: string;
  /** Trying again may help. */
  readonly canRetry: boolean;
  readonly requestId?: string | undefined;
}

/** @param error an error that the page does not wait for */
export function problemOf(error: Error, account: string): Problem {
  if (!(error instanceof MeterlineError))
    return { title: 'Something went wrong in this page', text: error.message, canRetry: true };
  return { ...problemOfResponse(error, account), requestId: error.requestId };
}

function problemOfResponse(error: MeterlineError, account: string): Problem {
  const { code, message, details, status } = error;
  if (code === 'insufficient_scope')
    return { title: 'This token may not read billing data', text: message, canRetry: false };
  if (status === 403) {
    const reasons = details.map((detail) => detail['message'] ?? '').join(' ');
    const text = reasons || 'There is no such account, or your key does not belong to it.';
    const wayOn =
      'Choose one of your accounts above, ask an admin of this one to add you, or sign in with another key.';
    return { title: `You have no access to ${accountName(account)}`, text: `${text} ${wayOn}`, canRetry: false };
  }
  if (isCursorGone(error)) {
    return { title: 'This list is too old to continue', text: 'It has to be read again.', canRetry: true };
  }
  return { title: 'The service refused the request', text: message, canRetry: code === TOO_MANY_GROUPS };
}

/** Later pages do not go on: the first one has to be read again, which has another cursor. */
export function isCursorGone(error: Error | null): boolean {
  return error instanceof MeterlineError && (error.code === 'cursor_expired' || error.code === 'invalid_cursor');
}

/** For a failed check of a key or token. The API says whether it is unknown, revoked or expired, and when it expired. */
export function signInProblem(error: unknown): string {
  if (error instanceof MeterlineError && error.status === 401) return error.message;
  if (error instanceof MeterlineError)
    return `${error.message} (${error.status}, request ${error.requestId ?? 'unknown'})`;
  if (error instanceof MeterlineConnectionError)
    return `${AWAY} No response came. Check the connection, or whether the service is running.`;
  // fetch refuses a header with such characters, so that nothing was sent.
  return 'This is not an API key or token: it contains characters that neither of them has.';
}

const AWAY = 'The service cannot be reached.';

/** While the page waits to try again. */
export function waitingText(error: Error): string {
  if (!(error instanceof MeterlineError)) return AWAY;
  if (error.status === 429) return 'Too many requests: the service asks to wait.';
  return `The service has a problem (${error.status}, request ${error.requestId ?? 'unknown'}).`;
}

/** `in 7 s`, `in 60 minutes`. */
export function waitText(seconds: number): string {
  return seconds > 120 ? `in ${Math.ceil(seconds / 60)} minutes` : `in ${seconds} s`;
}
