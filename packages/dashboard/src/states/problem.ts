/** Failures: whether the page tries again by itself, and what it shows. */
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';

const MOST_RETRIES = 4;
const FIRST_DELAY_MS = 1_000;
const LONGEST_DELAY_MS = 15_000;
/** If the service asks for a longer wait, the page shows the problem instead of waiting. */
const LONGEST_ASKED_SECONDS = 60;
const BUSY: ReadonlySet<number> = new Set([429, 502, 503, 504]);

/**
 * Whether the page tries again by itself. It does so instead of the client, so that it can show what it waits for. Unlike
 * the client it also retries a proxy's 502 and 504: all that it retries are reads.
 * @param failures before this one
 */
export function shouldRetry(failures: number, error: Error): boolean {
  if (failures >= MOST_RETRIES) return false;
  if (error instanceof MeterlineError)
    return BUSY.has(error.status) && (error.retryAfter ?? 0) <= LONGEST_ASKED_SECONDS;
  return error instanceof MeterlineConnectionError;
}

/** Milliseconds: as long as the service asks for, or else twice as long as the last time. */
export function retryDelay(failures: number, error: Error): number {
  const asked = error instanceof MeterlineError ? error.retryAfter : undefined;
  return asked === undefined ? Math.min(FIRST_DELAY_MS * 2 ** failures, LONGEST_DELAY_MS) : asked * 1_000;
}

export interface Problem {
  readonly title: string;
  readonly text: string;
  /** Trying again may help. */
  readonly canRetry: boolean;
  readonly requestId?: string | undefined;
}

export function problemOf(error: Error, account: string): Problem {
  if (error instanceof MeterlineConnectionError) {
    return {
      title: 'The service cannot be reached',
      text: 'No answer came. Check the connection, or whether the service is running.',
      canRetry: true,
    };
  }
  if (error instanceof MeterlineError) return { ...problemOfAnswer(error, account), requestId: error.requestId };
  return { title: 'Something went wrong in this page', text: error.message, canRetry: true };
}

function problemOfAnswer({ code, message, retryAfter, status }: MeterlineError, account: string): Problem {
  if (code === 'insufficient_scope')
    return { title: 'This token may not read billing data', text: message, canRetry: false };
  if (status === 403) {
    return {
      title: `You have no access to ${account}`,
      text: 'There is no such account, or your key does not belong to it. Choose one of yours above, or sign in with another key.',
      canRetry: false,
    };
  }
  if (status === 429) {
    return {
      title: 'Too many requests',
      text: `${message}${retryAfter ? ` It accepts requests again in ${retryAfter} seconds.` : ''}`,
      canRetry: true,
    };
  }
  if (status >= 500) return { title: 'The service has a problem', text: message, canRetry: true };
  if (code === 'cursor_expired' || code === 'invalid_cursor') {
    return { title: 'This list is too old to continue', text: 'Refresh to read it again.', canRetry: true };
  }
  return { title: 'The service refused the request', text: message, canRetry: false };
}

/** For a failed check of a key or token. */
export function signInProblem(error: unknown): string {
  if (error instanceof MeterlineError && error.status === 401) {
    return 'This key or token is unknown, revoked or expired. Check that all of it was copied.';
  }
  if (error instanceof MeterlineError)
    return `${error.message} (${error.status}, request ${error.requestId ?? 'unknown'})`;
  if (error instanceof MeterlineConnectionError)
    return 'The service cannot be reached. Check the connection and try again.';
  // fetch refuses a header with such characters, so that nothing was sent.
  return 'This is not an API key or token: it contains characters that neither of them has.';
}

/** While the page waits to try again. */
export function waitingText(error: Error): string {
  if (!(error instanceof MeterlineError)) return 'The service cannot be reached.';
  return error.status === 429
    ? 'Too many requests: the service asks to wait.'
    : `The service has a problem (${error.status}).`;
}
