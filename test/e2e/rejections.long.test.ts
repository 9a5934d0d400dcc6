/** Refused events are kept, once, and do not affect others. */
import { afterAll, beforeAll, beforeEach, expect, it, jest } from '@jest/globals';
import { MAX_JOB_BYTES, MAX_JOB_VALUES } from '@meterline/catalog';
import { usageEvent, usageEvents } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueData, enqueueRaw, rejectedRows, stored } from '../harness/queue.js';

jest.setTimeout(180_000);

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.startIngest();
});
afterAll(() => product.close());

let accounts = 0;
let accountId: string;
beforeEach(() => {
  accounts += 1;
  accountId = `account-${accounts}`;
});

/** An event of this test's own account. */
const good = (n: number) => usageEvent(n, { accountId });

it('a worker keeps bad events of a job with their position and the event as it was sent, and stores the others', async () => {
  const bad = { ...good(2), usage: -1 };
  const job = await product.send(good(1), bad, good(3), 'text', good(5));
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 3 });
  expect(await rejectedRows(product.warehouse, job)).toMatchObject([
    { job_id: job, position: 1, account_id: accountId, reason: 'invalid_usage', payload: JSON.stringify(bad) },
    { job_id: job, position: 3, account_id: '', reason: 'event_not_an_object', payload: '"text"' },
  ]);
});

it.each([
  ['a string', 'text', 'job_not_an_object'],
  ['null', null, 'job_not_an_object'],
  ['an array of events', [usageEvent(1)], 'job_not_an_object'],
  ['no events', { events: [] }, 'job_empty'],
  ['5,001 events', { events: usageEvents(0, 5_001) }, 'job_too_large'],
  ['events and another field', { events: [usageEvent(1)], source: 'x' }, 'job_invalid'],
])('a worker keeps a whole job that contains %s, between good ones', async (_, data, reason) => {
  await enqueueData(product.queue, good(1));
  const job = await enqueueData(product.queue, data);
  await enqueueData(product.queue, good(2));
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 2 });
  const rows = await rejectedRows(product.warehouse, job);
  expect(rows).toMatchObject([{ job_id: job, position: 0, reason, payload: JSON.stringify(data) }]);
});

it('a worker takes 5,000 events in a job', async () => {
  await enqueueData(product.queue, { events: usageEvents(0, 5_000).map((event) => ({ ...event, accountId })) });
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 5_000 });
});

it('a worker keeps the raw text of a job that is not JSON', async () => {
  const job = await enqueueRaw(product, { data: '{"eventId": oops' });
  await enqueueData(product.queue, good(1));
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 1 });
  expect(await rejectedRows(product.warehouse, job)).toMatchObject([
    { job_id: job, reason: 'job_not_an_object', payload: '{"eventId": oops' },
  ]);
});

it('a worker keeps an event that is nested deeper than the stack', async () => {
  const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
  const job = await enqueueRaw(product, { data: `{"events":[${JSON.stringify(good(1))},${deep}]}` });
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 1 });
  const rows = await rejectedRows(product.warehouse, job);
  expect(rows).toMatchObject([{ job_id: job, position: 1, reason: 'event_not_an_object' }]);
  expect(rows[0]?.payload).toContain(deep);
});

it('a worker keeps the data of a job that is larger than any job may be, and takes others', async () => {
  const text = `{"events":[${'{},'.repeat(MAX_JOB_BYTES / 3)}{}]}`;
  const job = await enqueueRaw(product, { data: text });
  await enqueueData(product.queue, good(1));
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 1 });
  const rows = await rejectedRows(product.warehouse, job);
  expect(rows).toMatchObject([{ job_id: job, reason: 'job_oversized' }]);
  expect(rows[0]?.payload === text).toBe(true);
  // It is larger than those of the last jobs that are kept.
  expect(await product.queue.getJob(job)).toBeUndefined();
});

it('a worker is not asked to take what Redis does not take, job data of more than 32 MB', async () => {
  await expect(enqueueRaw(product, { data: 'x'.repeat(32 * 2 ** 20 + 1) })).rejects.toThrow();
});

it('a worker keeps the data of a job with too many values without parsing it', async () => {
  const text = `{"events":[${'{},'.repeat(MAX_JOB_VALUES)}{}]}`;
  const job = await enqueueRaw(product, { data: text });
  await enqueueData(product.queue, good(1));
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 1 });
  const rows = await rejectedRows(product.warehouse, job);
  expect(rows).toMatchObject([{ job_id: job, reason: 'job_oversized' }]);
  expect(rows[0]?.payload === text).toBe(true);
});

it.each(['9'.repeat(20), `-${'9'.repeat(20)}`, '-1', 'yesterday'])(
  'a worker keeps a refused event of a job with the timestamp %s',
  async (timestamp) => {
    const job = await enqueueRaw(product, { data: '"text"', timestamp });
    await enqueueData(product.queue, good(1));
    await drained(product.queue);
    expect(await rejectedRows(product.warehouse, job)).toMatchObject([{ job_id: job }]);
  },
);

it('a worker shows every refused event once after the job is delivered again', async () => {
  const data = { events: [good(1), 'a', 'b'] };
  const job = await enqueueData(product.queue, data);
  await drained(product.queue);
  await (await product.queue.getJob(job))?.retry('completed');
  await drained(product.queue);
  expect(await product.queue.getJob(job)).toMatchObject({ attemptsStarted: 2 });
  expect(await rejectedRows(product.warehouse, job)).toMatchObject([{ position: 1 }, { position: 2 }]);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 1 });
});
