import { noTracing } from '@meterline/service/tracing';
import type { Warehouse } from '@meterline/warehouse';
import { pino } from 'pino';
import { Registry } from 'prom-client';
import { EventStore } from '../../services/ingest/src/event-store.js';
import { createIngestMetrics } from '../../services/ingest/src/metrics.js';

/** The event store of an ingest process. It logs nothing. */
export function openEventStore(warehouse: Warehouse): EventStore {
  return new EventStore({
    ...{ warehouse, log: pino({ enabled: false }), signal: new AbortController().signal },
    ...{ metrics: createIngestMetrics(new Registry()), tracer: noTracing().tracer },
  });
}
