/**
 * A runtime that records one event after another and writes into a journal what its emitter tells it, so that it can be killed at
 * any moment. It ends when its parent asks or is gone. Arguments: those of {@link ProducerProcess}.
 */
import { openSync, writeSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { openEmitter } from '@meterline/emitter';

const EVENTS_PER_TURN = 5;
const TURN_MS = 5;
const TURNS_PER_FLUSH = 20;
/** For one batch after another on a machine that other work slows down to a request a second. */
const CLOSE_WITHIN_MS = 600_000;

const [url = '', apiKey = '', accountId = '', run = '', journal = '', spool] = process.argv.slice(2);
const file = openSync(journal, 'a');
// One call of the system for each line: what is written stays when this process is killed.
const note = (line: string) => writeSync(file, `${line}\n`);

const meter = await openEmitter({
  url,
  apiKey,
  batchEvents: 50,
  batchMs: 20,
  onProblem: ({ code, message }) => {
    // An outage is the fault itself, and after SIGTERM events are dropped.
    if (code !== 'unreachable' && code !== 'dropped') note(`problem ${code} ${message}`);
  },
  ...(spool && { spool: { directory: spool } }),
});
meter.closeOn('SIGTERM', { timeoutMs: CLOSE_WITHIN_MS });

let isRequested = false;
process.on('message', () => {
  isRequested = true;
});
process.on('disconnect', () => process.exit(isRequested ? 0 : 1));

let recorded = 0;
for (let turn = 1; !isRequested; turn += 1) {
  for (let n = 0; n < EVENTS_PER_TURN; n += 1) {
    const id = meter.record({
      accountId,
      workspace: 'production',
      resourceType: 'agent',
      resourceName: 'support',
      resourceUuid: `${run}-${recorded}`,
      billingDimension: 'agent_async_requests_count',
      usage: 1,
    });
    if (id === undefined) break;
    recorded += 1;
    note(`recorded ${recorded}`);
  }
  if (turn % TURNS_PER_FLUSH === 0) void noteFlush(recorded);
  await sleep(TURN_MS);
}
const isSent = await meter.close({ timeoutMs: CLOSE_WITHIN_MS });
if (isSent) note(`accepted ${recorded}`);
const { counters } = meter;
if (counters.sent < counters.recorded || counters.unsent > 0) note(`problem counters ${JSON.stringify(counters)}`);
process.disconnect();

async function noteFlush(events: number): Promise<void> {
  if (await meter.flush({ timeoutMs: CLOSE_WITHIN_MS })) note(`accepted ${events}`);
}
