/** What goes wrong, and how it is told. */

/** An emitter cannot be opened; the message says what to do. */
export class EmitterError extends Error {
  override readonly name = 'EmitterError';
  readonly code: 'invalid_option' | 'missing_package' | 'spool_in_use' | 'spool_unusable';

  constructor(code: EmitterError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}

/** Events are not taken now, and are kept. */
export class NotTaken extends Error {
  /** They are not sent again before so many milliseconds. */
  readonly pauseMs: number;
  /** Whether no events are taken at the moment, of no lane. */
  readonly isAway: boolean;

  constructor(message: string, pauseMs: number, isAway = false) {
    super(message);
    this.pauseMs = pauseMs;
    this.isAway = isAway;
  }
}

/** The words of an error. Connecting to a name with several addresses fails with one error for each and no message of its own. */
export function wordsOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(wordsOf).join('; ');
  return error instanceof Error ? error.message : String(error);
}
