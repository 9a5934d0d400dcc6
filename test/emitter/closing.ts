/**
 * A program with emitters that close at SIGTERM. Argument: the address of each one's collector, and whether the program has work
 * of its own at the signal: it does that until its parent sends a message, and exits with 7.
 */
import { type Emitter, openEmitter } from '@meterline/emitter';
import { z } from 'zod';

const { urls, isBusy } = z
  .object({ urls: z.array(z.string()), isBusy: z.boolean() })
  .parse(JSON.parse(process.argv[2] ?? ''));

const meters: Emitter[] = [];
for (const url of urls) {
  const meter = await openEmitter({ url, apiKey: 'key', batchMs: 600_000 });
  meters.push(meter);
  meter.record({
    accountId: 'acme',
    workspace: 'production',
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_async_requests_count',
    usage: 1,
  });
  meter.closeOn('SIGTERM', { timeoutMs: 60_000 });
  if (isBusy) {
    process.once('SIGTERM', async () => {
      await meter.close();
      process.once('message', () => process.exit(7));
      process.send?.('closed');
    });
  }
}
const tell = () => void process.send?.(meters.map(({ counters }) => counters.sent));
// It answers every message with how much each emitter has sent.
process.on('message', tell);
// An emitter that has closed listens no more. Only then does it let the signal end the program.
if (!isBusy) process.on('removeListener', (event) => event === 'SIGTERM' && tell());
process.send?.('ready');
