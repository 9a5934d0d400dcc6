/** What is measured of admission. */
import { Counter, Gauge, type Registry } from 'prom-client';
import type { RefusalObserver } from './admission.js';
import type { FairSlots } from './fair-slots.js';

export function refusalCounter(registry: Registry): RefusalObserver {
  const refusals = new Counter({
    name: 'meterline_requests_refused_total',
    help: 'Requests refused because of a limit: rate, statements at once, or overload of the service.',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of ['rate', 'statements', 'overload']) refusals.inc({ reason }, 0);
  return (reason) => refusals.inc({ reason });
}

export function slotGauges(registry: Registry, slots: FairSlots): void {
  new Gauge({
    name: 'meterline_statement_slots_in_use',
    help: 'Requests of this process whose statements may run now.',
    registers: [registry],
    collect() {
      this.set(slots.inUse);
    },
  });
  new Gauge({
    name: 'meterline_requests_waiting',
    help: 'Requests of this process that wait for their turn.',
    registers: [registry],
    collect() {
      this.set(slots.waiting);
    },
  });
}
