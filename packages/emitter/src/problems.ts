/** Reports problems and counters of an emitter. Problems go to a listener, because `record` never throws. */
import { isName, property } from '@meterline/catalog/plain';

/** Thrown if an emitter cannot be opened. The message explains how to fix the problem. */
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
  /** `record` or the collector rejected an event. The emitter does not send it (again). Reported for each event. */
  | { readonly code: 'rejected'; readonly reason: string; readonly message: string; readonly event: unknown }
  /** An event was dropped because memory is full or the emitter is closed. Reported once until an event is stored again. */
  | { readonly code: 'dropped'; readonly message: string }
  /** The collector is unreachable. The emitter retries the events. Reported once until the collector accepts events. */
  | { readonly code: 'unreachable'; readonly message: string; readonly cause: unknown }
  /** The collector rejects requests, for example because of the key. Events are retried. Reported once until events are accepted. */
  | { readonly code: 'held'; readonly message: string; readonly cause: unknown }
  | { readonly code: 'spool'; readonly message: string; readonly cause?: unknown };

export type Report = (problem: Problem) => void;

const WARNING_TYPE = 'MeterlineWarning';

/**
 * Returns a function that passes problems to the listener. Errors that the listener throws, including asynchronous errors, become process
 * warnings. Without a listener, the problems themselves become process warnings. Rejected events then cause one warning per reason.
 */
export function reporter(listener: Report = warner()): Report {
  return async (problem) => {
    try {
      await listener(problem);
    } catch (error) {
      process.emitWarning(`onProblem threw an error: ${error}`, WARNING_TYPE);
    }
  };
}

function warner(): Report {
  const reportedReasons = new Set<string>();
  return (problem) => {
    if (problem.code === 'rejected') {
      if (reportedReasons.has(problem.reason)) return;
      reportedReasons.add(problem.reason);
    }
    process.emitWarning(problem.message, { type: WARNING_TYPE, code: problem.code });
  };
}

export function rejectedProblem(reason: string, message: string, event: unknown): Problem {
  return {
    code: 'rejected',
    reason,
    message: `a usage event${fieldsOf(event)} is rejected (${reason}): ${message}`,
    event,
  };
}

/** Returns the fields that identify the event, such as ` (account "acme", resource "support")`. */
function fieldsOf(event: unknown): string {
  try {
    const fields = { account: 'accountId', resource: 'resourceName', 'event ID': 'eventId' };
    const texts = Object.entries(fields).flatMap(([label, field]) => {
      const value = property(event, field);
      return typeof value === 'string' && isName(value) ? `${label} ${JSON.stringify(value)}` : [];
    });
    return texts.length > 0 ? ` (${texts.join(', ')})` : '';
  } catch {
    // The event may have a getter that throws.
    return '';
  }
}

/** Returns the message of an error. A failed connection to a host with several addresses is an AggregateError with an empty message. */
export function errorMessage(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(errorMessage).join('; ');
  return error instanceof Error ? error.message : String(error);
}

export interface Counters {
  /** Events added to the queue of unsent events, including events from sums and timers. */
  readonly recorded: number;
  /** Events accepted by the collector, including events recovered from the spool. */
  readonly sent: number;
  /** Events sent again because an attempt failed or its outcome is unknown. */
  readonly retried: number;
  /** Events that the emitter or the collector rejected as invalid. */
  readonly rejected: number;
  readonly dropped: number;
  readonly spooled: number;
  /** Events in memory or in the spool that the collector has neither accepted nor rejected yet. Only this counter can decrease. */
  readonly unsent: number;
}

export type Tally = { -readonly [name in keyof Omit<Counters, 'unsent'>]: number };

/**
 * Exposes the counters as OpenTelemetry metrics if the program has `@opentelemetry/api`. The program must set its meter provider first.
 * @returns a function that removes the metrics
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
