/** How a program learns what its emitter does, because `record` does not throw: what goes wrong, and how many events there were. */

/** An emitter cannot be opened; the message says what to do. */
export class EmitterError extends Error {
  override readonly name = 'EmitterError';

  constructor(
    readonly code: 'invalid_option' | 'spool_in_use' | 'spool_unusable',
    message: string,
    options?: ErrorOptions,
  ) {
    super(message, options);
  }
}

export type Problem =
  /** An event breaks a rule, `record`'s or the collector's, and is not sent (again). Told for each event. */
  | { readonly code: 'rejected'; readonly reason: string; readonly message: string; readonly event: unknown }
  /** There was no room for an event, or the emitter is closed. Told once for events in a row. */
  | { readonly code: 'dropped'; readonly message: string }
  /** The collector is away; events are sent again. Told once until one is accepted. */
  | { readonly code: 'unreachable'; readonly message: string; readonly cause: unknown }
  /** The collector does not take events, such as for the key; they are sent again. Told once until one is accepted. */
  | { readonly code: 'held'; readonly message: string; readonly cause: unknown }
  /** The spool could not be written or read. */
  | { readonly code: 'spool'; readonly message: string; readonly cause?: unknown };

export type Report = (problem: Problem) => void;

const WARNING_TYPE = 'MeterlineWarning';

/** Calls the listener and survives its errors, later ones too. Without one, warnings say it, each reason for a rejected event once. */
export function reporter(listener: Report = warner()): Report {
  return async (problem) => {
    try {
      await listener(problem);
    } catch (error) {
      process.emitWarning(`onProblem has thrown: ${error}`, WARNING_TYPE);
    }
  };
}

function warner(): Report {
  const told = new Set<string>();
  return (problem) => {
    if (problem.code === 'rejected') {
      if (told.has(problem.reason)) return;
      told.add(problem.reason);
    }
    process.emitWarning(problem.message, { type: WARNING_TYPE, code: problem.code });
  };
}

export function rejectedProblem(reason: string, message: string, event: unknown): Problem {
  return { code: 'rejected', reason, message: `a usage event is rejected (${reason}): ${message}`, event };
}

/** The message of an error. Connecting to a name with several addresses fails with one error for each and no message of its own. */
export function errorMessage(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(errorMessage).join('; ');
  return error instanceof Error ? error.message : String(error);
}

/** How many events an emitter has had to do with since it was opened. */
export interface Counters {
  /** Events that `record` has taken, sums and slices of timers included. */
  readonly recorded: number;
  /** Events that are accepted, recovered ones included. */
  readonly sent: number;
  /** Sent once more, because an attempt failed or its outcome is unknown. */
  readonly retried: number;
  /** Against the rules of an event: not taken, or taken, sent, and rejected by the collector. */
  readonly rejected: number;
  /** Not taken for lack of room, or because the emitter is closed. */
  readonly dropped: number;
  /** Recorded events that are in the spool, or were. */
  readonly spooled: number;
  /** Recorded now or found in the spool, and neither sent nor rejected yet. It may fall. */
  readonly unsent: number;
}

/** The counters while they are counted. */
export type Tally = { -readonly [name in keyof Omit<Counters, 'unsent'>]: number };

/**
 * Exposes counters as OpenTelemetry metrics in programs with `@opentelemetry/api`, whose meter provider must have been set before.
 * @returns what ends that
 */
export async function exposeMetrics(counters: () => Counters): Promise<() => void> {
  const api = await import('@opentelemetry/api').catch(() => undefined);
  if (!api) return () => undefined;
  const meter = api.metrics.getMeter('@meterline/emitter');
  const events = meter.createObservableCounter('meterline.emitter.events', { unit: '{event}' });
  const unsent = meter.createObservableUpDownCounter('meterline.emitter.unsent', { unit: '{event}' });
  const observe: Parameters<typeof meter.addBatchObservableCallback>[0] = (observer) => {
    const { unsent: waiting, ...outcomes } = counters();
    observer.observe(unsent, waiting);
    for (const [outcome, count] of Object.entries(outcomes)) observer.observe(events, count, { outcome });
  };
  meter.addBatchObservableCallback(observe, [events, unsent]);
  return () => meter.removeBatchObservableCallback(observe, [events, unsent]);
}
