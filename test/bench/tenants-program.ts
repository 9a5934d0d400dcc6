/** The producer of the bench `tenants`. Arguments: collector, key, accounts, events. It sends its parent what it has measured, and ends. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { openEmitter } from '@meterline/emitter';
import { residentMiB } from '../harness/programs.js';

/** Events between two turns of the event loop, in which others of the program run. */
const AT_ONCE = 500;

const [url = '', apiKey = '', accounts = '', events = ''] = process.argv.slice(2);
let requests = 0;
const meter = await openEmitter({
  url,
  apiKey,
  fetch: (input, init) => {
    requests += 1;
    return fetch(input, init);
  },
  onProblem: ({ message }) => {
    throw new Error(message);
  },
});
const usage = { workspace: 'production', resourceType: 'agent', resourceName: 'support', usage: '12.5' } as const;
const started = performance.now();
for (let n = 0; n < Number(events); n += 1) {
  const accountId = `tenant-${n % Number(accounts)}`;
  meter.record({ ...usage, accountId, billingDimension: 'agent_compute_runtime_gbs' });
  if (n % AT_ONCE === 0) await nextTurn();
}
if (!(await meter.close({ timeoutMs: 60_000 }))) throw new Error('not everything was sent');
const eventsPerSecond = (1000 * meter.counters.sent) / (performance.now() - started);
process.send?.({ eventsPerSecond, requests, residentMiB: residentMiB(process.pid, 'VmHWM') });
process.disconnect?.();
