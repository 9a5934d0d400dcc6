/** How many statements run and wait. */
import { Gauge, type Registry } from 'prom-client';
import type { Admission } from './admission.js';

export function slotGauges(registry: Registry, admission: Admission): void {
  new Gauge({
    name: 'meterline_statement_slots_in_use',
    help: 'Requests of this process whose statements may run now.',
    registers: [registry],
    collect() {
      this.set(admission.slots.inUse);
    },
  });
  new Gauge({
    name: 'meterline_requests_waiting',
    help: 'Requests of this process that wait for their turn.',
    registers: [registry],
    collect() {
      this.set(admission.waiting);
    },
  });
}
