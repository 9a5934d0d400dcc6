import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/harness/stack.js';
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

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

let jobs = 0;
let jobId: string;
beforeEach(() => {
  jobs += 1;
  jobId = `job-${jobs}`;
});

/** A rejected event of the job that only this test uses. */
function rejectedEvent(changes: Partial<RejectedEvent> = {}): RejectedEvent {
  return {
    receivedAt: TIME,
    jobId,
    position: 0,
    accountId: 'acme',
    reason: 'invalid_usage',
    message: 'usage must be a number',
    payload: '{"usage":"much"}',
    ...changes,
  };
}

function open(filter: RejectionFilter = {}, limit = 1_000, after?: OpenRejection): Promise<OpenRejection[]> {
  return readOpenRejections(database.warehouse, { jobId, ...filter }, { limit, after });
}

async function positions(filter: RejectionFilter = {}): Promise<number[]> {
  return (await open(filter)).map(({ position }) => position);
}

describe('rejected events', () => {
  const stored = () =>
    select(database.warehouse, 'SELECT * FROM rejected_events WHERE job_id = {jobId: String}', { jobId });

  it('are kept whole', async () => {
    await prepareRejectedEvents([rejectedEvent({ position: 4_999 })])(database.warehouse);
    expect(await stored()).toEqual([
      {
        received_at: '2025-10-01 12:00:00.007',
        job_id: jobId,
        position: 4_999,
        account_id: 'acme',
        reason: 'invalid_usage',
        message: 'usage must be a number',
        payload: '{"usage":"much"}',
      },
    ]);
  });

  it('keep a payload of 100 megabytes', async () => {
    const payload = JSON.stringify({ text: '😀'.repeat(25_000_000) });
    await prepareRejectedEvents([rejectedEvent({ payload })])(database.warehouse);
    const length = 'SELECT length(payload) AS bytes FROM rejected_events WHERE job_id = {jobId: String}';
    expect(await select(database.warehouse, length, { jobId })).toEqual([
      { bytes: String(Buffer.byteLength(payload)) },
    ]);
  });

  it.each(['\0\b\t\r\n\u2028"\'\\', '{a: String}', '名前 😀'])('keep the text %j', async (payload) => {
    await prepareRejectedEvents([rejectedEvent({ payload })])(database.warehouse);
    expect(await stored()).toMatchObject([{ payload }]);
  });

  it('keep what has half a character, which UTF-8 has not', async () => {
    await prepareRejectedEvents([rejectedEvent({ payload: 'a\ud800b' })])(database.warehouse);
    expect(await stored()).toMatchObject([{ payload: 'a\ufffdb' }]);
  });

  it('may be none', async () => {
    await expect(prepareRejectedEvents([])(database.warehouse)).resolves.toBeUndefined();
  });
});

describe('open rejections', () => {
  it('come with everything but their payload', async () => {
    await prepareRejectedEvents([rejectedEvent({ position: 4_999, payload: '"é"' })])(database.warehouse);
    expect(await open()).toEqual([
      {
        receivedAt: TIME,
        fingerprint: expect.any(BigInt),
        jobId,
        position: 4_999,
        accountId: 'acme',
        reason: 'invalid_usage',
        message: 'usage must be a number',
        payloadBytes: 4,
      },
    ]);
  });

  it('come once, with the same id, however often the job is delivered', async () => {
    await prepareRejectedEvents([rejectedEvent()])(database.warehouse);
    const [first] = await open();
    await prepareRejectedEvents([rejectedEvent()])(database.warehouse);
    expect(await open()).toEqual([first]);
  });

  it('come the newest first, and of a job the highest position first, in pages that leave none out', async () => {
    const rows = Array.from({ length: 7 }, (_, n) => rejectedEvent({ receivedAt: TIME + (n >> 1), position: n }));
    await prepareRejectedEvents(rows)(database.warehouse);
    const seen: number[] = [];
    let after: OpenRejection | undefined;
    do {
      const page = await open({}, 2, after);
      seen.push(...page.map(({ position }) => position));
      after = page.at(-1);
    } while (after);
    expect(seen).toEqual([6, 5, 4, 3, 2, 1, 0]);
  });

  it('are those that fit the filter', async () => {
    await prepareRejectedEvents([
      rejectedEvent({ position: 0 }),
      rejectedEvent({ position: 1, reason: 'no_price' }),
      rejectedEvent({ position: 2, accountId: 'zeta' }),
      rejectedEvent({ position: 3, receivedAt: TIME + 1 }),
      rejectedEvent({ position: 4, payload: '[]' }),
    ])(database.warehouse);
    expect(await positions({ reason: 'no_price' })).toEqual([1]);
    expect(await positions({ accountId: 'zeta' })).toEqual([2]);
    expect(await positions({ from: TIME + 1 })).toEqual([3]);
    expect(await positions({ to: TIME + 1 })).toEqual([4, 2, 1, 0]);
    expect(await positions({ position: 2 })).toEqual([2]);
    expect(await positions({ payload: '[]' })).toEqual([4]);
    expect(await countOpenRejections(database.warehouse, { jobId, accountId: 'acme' })).toBe(4);
  });
});

describe('payloads', () => {
  it('come in the order of the ids; one that is gone is undefined', async () => {
    const payloads = ['{"a":1}', '{"a":2}', `"${'😀'.repeat(100_000)}"`];
    await prepareRejectedEvents(payloads.map((payload, position) => rejectedEvent({ position, payload })))(
      database.warehouse,
    );
    const ids = (await open()).reverse();
    const gone = { receivedAt: TIME, fingerprint: 1n };
    expect(await readRejectionPayloads(database.warehouse, [...ids, gone])).toEqual([...payloads, undefined]);
    expect(await readRejectionPayloads(database.warehouse, [])).toEqual([]);
  });
});

describe('settling', () => {
  async function storedRows(): Promise<number> {
    const query = 'SELECT toUInt32(count()) AS rows FROM rejected_events WHERE job_id = {jobId: String}';
    return (await select<{ rows: number }>(database.warehouse, query, { jobId }))[0]?.rows ?? -1;
  }

  it('removes exactly those, also where a job has written them twice', async () => {
    const rows = [0, 1, 2].map((position) => rejectedEvent({ position }));
    await prepareRejectedEvents(rows)(database.warehouse);
    await prepareRejectedEvents(rows)(database.warehouse);
    const [third, , first] = await open();
    await settleRejections(database.shards, third && first ? [third, first] : [], 'discarded');
    expect(await positions()).toEqual([1]);
    expect(await storedRows()).toBe(2);
  });

  it('keeps its word when the job is delivered again afterwards', async () => {
    const rows = [0, 1].map((position) => rejectedEvent({ position }));
    await prepareRejectedEvents(rows)(database.warehouse);
    const [second] = await open();
    await settleRejections(database.shards, second ? [second] : [], 'replayed');
    await prepareRejectedEvents(rows)(database.warehouse);
    expect(await positions()).toEqual([0]);
    expect(await countOpenRejections(database.warehouse, { jobId })).toBe(1);
  });

  it('again, or of nothing, changes nothing', async () => {
    await prepareRejectedEvents([rejectedEvent()])(database.warehouse);
    const ids = await open();
    await settleRejections(database.shards, ids, 'replayed');
    for (const again of [ids, []]) await settleRejections(database.shards, again, 'replayed');
    expect(await open()).toEqual([]);
  });

  it('does not touch another job that says the same at the same time', async () => {
    await prepareRejectedEvents([rejectedEvent(), rejectedEvent({ jobId: `${jobId}-other` })])(database.warehouse);
    await settleRejections(database.shards, await open(), 'discarded');
    expect(await open({ jobId: `${jobId}-other` })).toHaveLength(1);
  });
});
