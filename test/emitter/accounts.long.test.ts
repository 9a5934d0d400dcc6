/** One emitter for several accounts, and a real collector: what happens to one account is no other one's trouble. */
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { openEmitter, type Problem } from '@meterline/emitter';
import { type CollectorSite, startCollectorSite } from '../harness/collector.js';

const EVENTS_EACH = 700;
const USAGE = {
  workspace: 'w',
  resourceType: 'agent',
  resourceName: 'with "quotes" \\ é 🎈',
  billingDimension: 'agent_async_requests_count',
  usage: 1,
} as const;

let site: CollectorSite;
beforeAll(async () => {
  site = await startCollectorSite();
});
afterAll(() => site.close());

it('the events of an account wait until its key is right, and those of another are accepted meanwhile', async () => {
  const good = await site.account();
  const held = await site.account();
  // At first the key of another account, then one that does not exist, then the right one.
  let key = good.key;
  const problems: Problem[] = [];
  const meter = await openEmitter({
    url: site.service.url,
    apiKey: (account) => (account === good.account ? good.key : key),
    onProblem: (problem) => problems.push(problem),
  });
  const recorded: unknown[] = [];
  for (let n = 0; n < EVENTS_EACH; n += 1) {
    for (const { account } of [good, held]) recorded.push(meter.record({ ...USAGE, accountId: account }));
  }
  void meter.flush();
  while (meter.counters.sent < EVENTS_EACH || problems.length === 0) await sleep(10);
  expect(problems).toMatchObject([
    { code: 'held', message: expect.stringContaining(`${held.account} cannot be sent`) },
  ]);
  expect(meter.counters).toMatchObject({ sent: EVENTS_EACH, rejected: 0, unsent: EVENTS_EACH });
  key = 'mlk_unknown';
  const { retried } = meter.counters;
  while (meter.counters.retried === retried) await sleep(10);
  key = held.key;
  expect(await meter.close({ timeoutMs: 60_000 })).toBe(true);
  expect(problems).toHaveLength(1);
  const sent = (await site.takeJobs()).flat();
  expect(sent.map(({ eventId }) => eventId).sort()).toEqual(recorded.sort());
  expect(sent.every(({ resourceName }) => resourceName === USAGE.resourceName)).toBe(true);
});
