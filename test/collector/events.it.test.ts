/** What the collector takes and answers: DESIGN section 3, decision 0025. */
import { randomUUID } from 'node:crypto';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { eventIdOf } from '@meterline/collector';
import { type CollectorSite, event, eventsAnswer, startCollectorSite } from '../harness/collector.js';
import { until } from '../harness/queue.js';

/** Of a greedy key, under way at once. */
const BODIES = 20;
/** Requests of another key meanwhile, one after the other. */
const POLITE = 5;

let site: CollectorSite;
let account: string;
let key: string;
beforeAll(async () => {
  site = await startCollectorSite({ ACCOUNT_RATE: '100000' });
  ({ account, key } = await site.account());
});
afterEach(() => site.takeJobs());
afterAll(() => site.close());

const send = (body: unknown, query = '') => site.send(account, key, JSON.stringify(body), { query });

it('a request is answered with a result for each event, and its events are in the queue by then', async () => {
  const [first, second] = [event(), event({ accountId: account })];
  const { status, body } = await send([first, second]);
  expect({ status, body }).toEqual({
    status: 202,
    body: {
      accepted: 2,
      rejected: 0,
      results: [first, second].map(({ eventId }, index) => ({ index, eventId, status: 'accepted' })),
    },
  });
  expect(await site.takeJobs()).toEqual([[first, second].map((sent) => ({ ...sent, accountId: account }))]);
});

it('a request may be one event, or what a job holds', async () => {
  expect((await send(event())).status).toBe(202);
  expect((await send({ events: [event(), event()] })).status).toBe(202);
  expect((await site.takeJobs()).map((events) => events.length)).toEqual([1, 2]);
});

it('a request keeps the accepted events of a mixed one, and says of the others what the worker would say', async () => {
  const good = event();
  const { status, body } = await send([event({ usage: -1 }), good, 7, event({ color: 'red' })]);
  expect(status).toBe(202);
  const { accepted, rejected, results } = eventsAnswer.parse(body);
  expect([accepted, rejected, results.map(({ reason }) => reason)]).toEqual([
    1,
    3,
    ['invalid_usage', undefined, 'event_not_an_object', 'unknown_field'],
  ]);
  expect(results[2]).toEqual({
    index: 2,
    status: 'rejected',
    reason: 'event_not_an_object',
    message: 'an event must be a JSON object',
  });
  expect(await site.takeJobs()).toEqual([[{ ...good, accountId: account }]]);
});

it('a request of which nothing can be accepted is 400, with the results and the usual error', async () => {
  const { status, body } = await send([event({ usage: 'much' })]);
  expect(status).toBe(400);
  expect(body).toMatchObject({
    code: 400,
    error: 'no_event_accepted',
    accepted: 0,
    rejected: 1,
    results: [{ index: 0 }],
  });
  expect(await site.takeJobs()).toEqual([]);
});

it('a request with validate=only is checked, and nothing is kept', async () => {
  expect(await send([event(), event({ usage: -1 })], '?validate=only')).toMatchObject({
    status: 200,
    body: { accepted: 1, rejected: 1 },
  });
  expect(await send([7], '?validate=only')).toMatchObject({ status: 200, body: { accepted: 0, rejected: 1 } });
  expect(await site.takeJobs()).toEqual([]);
  expect(await send([event()], '?validate=yes')).toMatchObject({ status: 400, body: { error: 'invalid_parameter' } });
});

it('a request may not name another account', async () => {
  const { body } = await send([event({ accountId: 'somebody' })]);
  expect(eventsAnswer.parse(body).results).toMatchObject([{ reason: 'invalid_account_id' }]);
});

it('a question is told where to go', async () => {
  const response = await fetch(`${site.service.url}/v0/accounts/${account}/events`);
  expect([response.status, response.headers.get('allow')]).toEqual([405, 'POST']);
  expect(await response.text()).toContain('read from the query API');
});

it('an id that is no UUID becomes the same one each time, another one in another account', async () => {
  const [first] = eventsAnswer.parse((await send([event({ eventId: 'run 1' })])).body).results;
  const [again] = eventsAnswer.parse((await send([event({ eventId: 'run 1' })])).body).results;
  expect(first?.eventId).toBe(eventIdOf(account, 'run 1'));
  expect(again?.eventId).toBe(first?.eventId);
  expect(eventIdOf('another', 'run 1')).not.toBe(first?.eventId);
  // For ever: a release that computed another one would count events again.
  expect(eventIdOf('acme', 'run-4711')).toBe('48bb1770-de5d-50a4-b30b-f6939f1d2208');
});

it.each([
  ['is missing', { eventId: undefined }, 'missing_field'],
  ['is empty', { eventId: '' }, 'invalid_event_id'],
  ['is a number', { eventId: 7 }, 'invalid_event_id'],
  ['is longer than a name', { eventId: 'x'.repeat(257) }, 'invalid_event_id'],
])('an id that %s is refused', async (_what, change, reason) => {
  const [result] = eventsAnswer.parse((await send([event(change)])).body).results;
  expect(result).toMatchObject({ status: 'rejected', reason });
});

it.each(['admin', 'member'] as const)(
  'who may send is not the key of a %s, which is told what to use',
  async (role) => {
    const answer = await site.send(account, await site.key(account, role), JSON.stringify([event()]));
    expect(answer).toMatchObject({ status: 403, body: { error: 'forbidden' } });
    expect(JSON.stringify(answer.body)).toContain('--role emitter');
  },
);

it('who may send is the key of an emitter of the account, and of no other one', async () => {
  expect(await site.send(`no-${randomUUID()}`, key, JSON.stringify([event()]))).toMatchObject({
    status: 403,
    body: { message: 'Access denied' },
  });
  expect(await site.send(account, 'mlk_nobody', '[]')).toMatchObject({ status: 401 });
});

it('bodies of a key that sends many at once are checked in turn with those of others, which are not behind all of them', async () => {
  const [greedy, polite] = await Promise.all([site.account(), site.account()]);
  const packed = gzipSync(JSON.stringify(Array<unknown>(5_000).fill(event())));
  const options = { query: '?validate=only', headers: { 'content-encoding': 'gzip' } };
  let answered = 0;
  let isOver = false;
  // It never has fewer than so many on their way, however long the others take.
  const sending = Array.from({ length: BODIES }, async () => {
    for (; !isOver; answered += 1) {
      const { status } = await site.send(greedy.account, greedy.key, packed, options);
      expect(status).toBe(200);
    }
  });
  await until('the greedy key is served', 30_000, async () => answered > 0);
  const before = answered;
  for (let n = 0; n < POLITE; n += 1) {
    expect((await site.send(polite.account, polite.key, JSON.stringify(event()))).status).toBe(202);
  }
  const meanwhile = answered - before;
  isOver = true;
  await Promise.all(sending);
  // Behind all of them, each of its requests would have waited for as many.
  expect(meanwhile).toBeLessThan((POLITE * BODIES) / 2);
});
