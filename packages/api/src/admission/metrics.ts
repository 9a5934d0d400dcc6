/** What is measured of refusals. */
import { Counter, type Registry } from 'prom-client';

const REASONS = ['rate', 'statements', 'overload'] as const;

/** Called for each request that was not answered because of a limit. */
export type RefusalObserver = (reason: (typeof REASONS)[number]) => void;

export function refusalCounter(registry: Registry): RefusalObserver {
  const refusals = new Counter({
    name: 'meterline_requests_refused_total',
    help: 'Requests refused because of a limit: rate, statements at once, or overload of the service.',
    labelNames: ['reason'],
    registers: [registry],
  });
  for (const reason of REASONS) refusals.inc({ reason }, 0);
  return (reason) => refusals.inc({ reason });
}
