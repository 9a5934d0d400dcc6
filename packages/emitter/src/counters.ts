/** How many events an emitter has had to do with since it was opened. */
export interface Counters {
  /** Those that `record` has taken, sums and slices of timers included. */
  readonly recorded: number;
  /** Those that are accepted, recovered ones included. */
  readonly sent: number;
  /** Sent once more, because an attempt failed or its outcome is unknown. */
  readonly retried: number;
  /** Against the rules of an event: not taken, or taken, sent, and rejected by the collector. */
  readonly rejected: number;
  /** Not taken for lack of room, or because the emitter is closed. */
  readonly dropped: number;
  /** Those of the recorded ones that are in the spool, or were. */
  readonly spooled: number;
  /** Recorded now or found in the spool, and neither sent nor rejected yet. It may fall. */
  readonly unsent: number;
}

/** The same while they are counted. */
export type Tally = { -readonly [name in keyof Omit<Counters, 'unsent'>]: number };

/** Exposes counters as OpenTelemetry metrics. @returns what ends them */
export type ExposeMetrics = (counters: () => Counters) => () => void;

/** @returns undefined in programs without `@opentelemetry/api`. The meter provider must have been set before */
export async function loadMetrics(): Promise<ExposeMetrics | undefined> {
  const api = await import('@opentelemetry/api').catch(() => undefined);
  if (!api) return undefined;
  const meter = api.metrics.getMeter('@meterline/emitter');
  const events = meter.createObservableCounter('meterline.emitter.events', { unit: '{event}' });
  const unsent = meter.createObservableUpDownCounter('meterline.emitter.unsent', { unit: '{event}' });
  return (counters) => {
    const observe: Parameters<typeof meter.addBatchObservableCallback>[0] = (observer) => {
      const { unsent: waiting, ...outcomes } = counters();
      observer.observe(unsent, waiting);
      for (const [outcome, count] of Object.entries(outcomes)) observer.observe(events, count, { outcome });
    };
    meter.addBatchObservableCallback(observe, [events, unsent]);
    return () => meter.removeBatchObservableCallback(observe, [events, unsent]);
  };
}
