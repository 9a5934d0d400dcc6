/** What went wrong, in words that help. */
import { MeterlineConnectionError, MeterlineError } from '@meterline/client';

export interface Problem {
  readonly title: string;
  readonly text: string;
  /** Whether trying again may help. */
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
      text: `${message}${retryAfter ? ` It takes requests again in ${retryAfter} seconds.` : ''}`,
      canRetry: true,
    };
  }
  if (status >= 500) return { title: 'The service has a problem', text: message, canRetry: true };
  if (code === 'cursor_expired' || code === 'invalid_cursor') {
    return { title: 'This list is too old to go on with', text: 'Refresh to read it anew.', canRetry: true };
  }
  return { title: 'The service refused the request', text: message, canRetry: false };
}
