/** How rejected events are kept, found and settled. What an operator sees of it: test/cli/rejected. */
import { beforeEach, expect, it } from '@jest/globals';
import { select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import {
  countOpenRejections,
  type OpenRejection,
  prepareRejectedEvents,
  type RejectedEvent,
  type RejectionFilter,
  readOpenRejections,
  readRejectionPayloads,
  settleRejections,
} from './rejections.js';

const TIME = Date.UTC(2025, 9, 1, 12, 0, 0, 7);

const database = testDatabase();
let jobs = 0;
let jobId: string;
beforeEach(() => {
  jobs += 1;
  jobId = `job-${jobs}`;
});

/** Keeps rejected events of the job that only this test uses: at each position one that differs so. */
function reject(...rejected: readonly Partial<RejectedEvent>[]): Promise<void> {
  const rows = rejected.map(
    (changes, position): RejectedEvent => ({
      ...{ receivedAt: TIME, jobId, position, accountId: 'acme', reason: 'invalid_usage' },
      ...{ message: 'usage must be a number', payload: '{"usage":"much"}' },
      ...changes,
    }),
  );
  return prepareRejectedEvents(rows)(database.warehouse);
}

function open(filter: RejectionFilter = {}, limit = 1_000, after?: OpenRejection): Promise<OpenRejection[]> {
  return readOpenRejections(database.warehouse, { jobId, ...filter }, { limit, after });
}

async function positions(filter: RejectionFilter = {}): Promise<number[]> {
  return (await open(filter)).map(({ position }) => position);
}

function rows<Row>(columns: string): Promise<Row[]> {
  const query = `SELECT ${columns} FROM rejected_events WHERE job_id = {jobId: String}`;
  return select<Row>(database.warehouse, query, { jobId });
}

it('a rejected event is kept whole, and shown without its payload', async () => {
  await reject({ position: 4_999, payload: '"é"' });
  const said = { reason: 'invalid_usage', message: 'usage must be a number' };
  expect(await rows('*')).toEqual([
    {
      ...{ received_at: '2025-10-01 12:00:00.007', job_id: jobId, position: 4_999, account_id: 'acme' },
      ...{ ...said, payload: '"é"' },
    },
  ]);
  expect(await open()).toEqual([
    {
      ...{ receivedAt: TIME, fingerprint: expect.any(BigInt), jobId, position: 4_999, accountId: 'acme' },
      ...{ ...said, payloadBytes: 4 },
    },
  ]);
});

it.each([
  ['of any characters', '\0\b\t\r\n\u2028"\'\\ {a: String} 名前 😀', undefined],
  // UTF-8 has none.
  ['of half a character', 'a\ud800b', 'a\ufffdb'],
])('a rejected event keeps a payload %s', async (_, payload, kept = payload) => {
  await reject({ payload });
  expect(await rows('payload')).toEqual([{ payload: kept }]);
});

it('a rejected event keeps a payload of 100 megabytes', async () => {
  const payload = JSON.stringify({ text: '😀'.repeat(25_000_000) });
  await reject({ payload });
  expect(await rows('length(payload) AS bytes')).toEqual([{ bytes: String(Buffer.byteLength(payload)) }]);
});

it('open rejections come once, with the same id, however often the job is delivered', async () => {
  await reject();
  await reject({});
  const [first] = await open();
  await reject({});
  expect(await open()).toEqual([first]);
});

it('open rejections come the newest first, and of a job the highest position first, in pages that leave none out', async () => {
  await reject(...Array.from({ length: 7 }, (_, n) => ({ receivedAt: TIME + (n >> 1) })));
  const seen: number[] = [];
  let after: OpenRejection | undefined;
  do {
    const page = await open({}, 2, after);
    seen.push(...page.map(({ position }) => position));
    after = page.at(-1);
  } while (after);
  expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0]);
});

it('open rejections are those that fit the filter', async () => {
  const others = [{ reason: 'no_price' }, { accountId: 'zeta' }, { receivedAt: TIME + 1 }, { payload: '[]' }] as const;
  await reject({}, ...others);
  expect(await positions({ reason: 'no_price' })).toEqual([1]);
  expect(await positions({ accountId: 'zeta' })).toEqual([2]);
  expect(await positions({ from: TIME + 1 })).toEqual([3]);
  expect(await positions({ to: TIME + 1 })).toEqual([4, 2, 1, 0]);
  expect(await positions({ position: 2 })).toEqual([2]);
  expect(await positions({ payload: '[]' })).toEqual([4]);
  expect(await countOpenRejections(database.warehouse, { jobId, accountId: 'acme' })).toBe(4);
});

it('payloads come in the order of the ids; one that is gone is undefined', async () => {
  const payloads = ['{"a":1}', '{"a":2}', `"${'😀'.repeat(100_000)}"`];
  await reject(...payloads.map((payload) => ({ payload })));
  const ids = [...(await open()).reverse(), { receivedAt: TIME, fingerprint: 1n }];
  expect(await readRejectionPayloads(database.warehouse, ids)).toEqual([...payloads, undefined]);
  expect(await readRejectionPayloads(database.warehouse, [])).toEqual([]);
});

it('settling removes exactly those, also where a job has written them twice', async () => {
  for (let time = 0; time < 2; time += 1) await reject({}, {}, {});
  const ids = (await open()).filter(({ position }) => position !== 1);
  await settleRejections(database.shards, ids, 'discarded');
  expect(await positions()).toEqual([1]);
  expect(await rows('DISTINCT position')).toEqual([{ position: 1 }]);
});

it('settling holds when the job is delivered again afterwards, and again, or of nothing, changes nothing', async () => {
  await reject({}, {});
  const [second] = await open();
  for (const ids of [second ? [second] : [], second ? [second] : [], []]) {
    await settleRejections(database.shards, ids, 'replayed');
    await reject({}, {});
    expect(await positions()).toEqual([0]);
    expect(await countOpenRejections(database.warehouse, { jobId })).toBe(1);
  }
});

it('settling does not touch another job that says the same at the same time', async () => {
  const other = `${jobId}-other`;
  await reject({}, { position: 0, jobId: other });
  await settleRejections(database.shards, await open(), 'discarded');
  expect(await open({ jobId: other })).toHaveLength(1);
});
