/** The counters as OpenTelemetry metrics, if the program has `@opentelemetry/api` and has set a meter provider before. */
import { metrics } from '@opentelemetry/api';
import type { Counters } from './counters.js';

const NAME = '@meterline/emitter';

/** @returns what ends them */
export function exposeMetrics(counters: () => Counters): () => void {
  const meter = metrics.getMeter(NAME);
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
