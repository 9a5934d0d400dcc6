import { connectionHint } from './connection-hint.js';

/** The error of a service that cannot start. Its message is one line that says what to fix. */
export class StartError extends Error {
  override readonly name = 'StartError';
}

/** In characters. A server of another kind may respond with a whole page. */
const LONGEST_REASON = 300;

/** @param message what does not work; the message of the cause follows in brackets, and a hint where the cause has one */
export function startError(message: string, cause: unknown): StartError {
  const reason = [reasonOf(cause), connectionHint(cause) ?? ''].filter(Boolean).join('; ');
  return new StartError(reason === '' ? message : `${message} (${reason})`, { cause });
}

/** A connection to a name with several addresses fails with an AggregateError that has no message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ');
  const text = (error instanceof Error ? error.message : String(error)).replace(/\s+/g, ' ').trim();
  return text.length > LONGEST_REASON ? `${text.slice(0, LONGEST_REASON)}…` : text;
}
