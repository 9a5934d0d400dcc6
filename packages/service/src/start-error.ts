import { connectionHint } from './connection-hint.js';

/** Thrown if a service cannot start. The message is one line that explains what to fix. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** In characters. The limit is needed because a server that is not Redis or ClickHouse may respond with a whole web page. */
const MAX_REASON_LENGTH = 300;

/** Creates an error with the message, the reason in parentheses, and a hint if there is one. @param message what failed */
export function startError(message: string, cause: unknown): StartError {
  const reason = [reasonOf(cause), connectionHint(cause) ?? ''].filter(Boolean).join('; ');
  return new StartError(reason === '' ? message : `${message} (${reason})`, { cause });
}

/** Returns the error message. An AggregateError has no message of its own, so the messages of its errors are returned. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  const text = (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim();
  return text.length > MAX_REASON_LENGTH ? `${text.slice(0, MAX_REASON_LENGTH)}…` : text;
}
