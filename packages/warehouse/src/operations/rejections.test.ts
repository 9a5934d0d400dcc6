import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/stack.js';
import { prepareRejectedEvents, type RejectedEvent } from '../events/rejected-events.js';
import {
  countOpenRejections,
  countOpenRejectionsStatement,
  deleteRejectionsStatement,
  type OpenRejection,
  openRejectionsStatement,
  type RejectionFilter,
  readOpenRejections,
  readRejectionPayloads,
  rejectionPayloadsStatement,
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

/** A refused event of the job that only this test uses. */
function refused(changes: Partial<RejectedEvent> = {}): RejectedEvent {
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

describe('the statements', () => {
  it('leave out what is settled, and page by the order', () => {
    const after: OpenRejection = {
      receivedAt: TIME,
      fingerprint: 2n ** 64n - 1n,
      jobId: '7',
      position: 3,
      accountId: '',
      reason: 'job_empty',
      message: '',
      payloadBytes: 0,
    };
    const filter = { from: 1, to: 2, reason: 'job_empty', accountId: 'a' } as const;
    expect(openRejectionsStatement(filter, { limit: 5, after })).toEqual({
      name: 'read_open_rejections',
      query: `
SELECT
  toUnixTimestamp64Milli(received_at) AS received_ms,
  sipHash64(job_id, position, payload) AS fingerprint,
  job_id,
  position,
  account_id,
  reason,
  message,
  length(payload) AS payload_bytes
FROM rejected_events FINAL
WHERE received_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC')
  AND received_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC')
  AND reason = {reason: String}
  AND account_id = {accountId: String}
  AND (received_at, sipHash64(job_id, position, payload)) NOT IN (SELECT received_at, fingerprint FROM settled_rejections WHERE received_at >= fromUnixTimestamp64Milli({from: Int64}, 'UTC') AND received_at < fromUnixTimestamp64Milli({to: Int64}, 'UTC'))
  AND (received_at, job_id, position, fingerprint)
    < (fromUnixTimestamp64Milli({after_time: Int64}, 'UTC'), {after_job: String}, {after_position: UInt32}, {after_fingerprint: UInt64})
ORDER BY received_at DESC, job_id DESC, position DESC, fingerprint DESC
LIMIT {limit: UInt32}`,
      query_params: {
        from: 1,
        to: 2,
        reason: 'job_empty',
        accountId: 'a',
        limit: 5,
        after_time: TIME,
        after_job: '7',
        after_position: 3,
        after_fingerprint: '18446744073709551615',
      },
    });
  });

  it('count without a filter', () => {
    expect(countOpenRejectionsStatement({})).toEqual({
      name: 'count_open_rejections',
      query: `
SELECT count() AS rejections
FROM rejected_events FINAL
WHERE (received_at, sipHash64(job_id, position, payload)) NOT IN (SELECT received_at, fingerprint FROM settled_rejections)`,
      query_params: {},
    });
  });

  it('read and delete by id', () => {
    const ids = [
      { receivedAt: 1, fingerprint: 2n },
      { receivedAt: 3, fingerprint: 4n },
    ];
    const where = `WHERE received_at IN arrayMap(t -> fromUnixTimestamp64Milli(t, 'UTC'), {times: Array(Int64)})
  AND (toUnixTimestamp64Milli(received_at), sipHash64(job_id, position, payload))
    IN arrayZip({times: Array(Int64)}, {fingerprints: Array(UInt64)})`;
    const query_params = { times: [1, 3], fingerprints: [2n, 4n] };
    expect(rejectionPayloadsStatement(ids)).toEqual({
      name: 'read_rejection_payloads',
      query: `
SELECT DISTINCT
  toUnixTimestamp64Milli(received_at) AS received_ms,
  sipHash64(job_id, position, payload) AS fingerprint,
  payload
FROM rejected_events
${where}`,
      query_params,
    });
    expect(deleteRejectionsStatement(ids)).toEqual({
      name: 'delete_rejections',
      query: `\nDELETE FROM rejected_events\n${where}`,
      query_params,
    });
  });
});

describe('open refusals', () => {
  it('come with everything but their payload', async () => {
    await prepareRejectedEvents([refused({ position: 4_999, payload: '"é"' })])(database.warehouse);
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
    await prepareRejectedEvents([refused()])(database.warehouse);
    const [first] = await open();
    await prepareRejectedEvents([refused()])(database.warehouse);
    expect(await open()).toEqual([first]);
  });

  it('come the newest first, and of a job the highest position first, in pages that leave none out', async () => {
    const rows = Array.from({ length: 7 }, (_, n) => refused({ receivedAt: TIME + (n >> 1), position: n }));
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
      refused({ position: 0 }),
      refused({ position: 1, reason: 'no_price' }),
      refused({ position: 2, accountId: 'zeta' }),
      refused({ position: 3, receivedAt: TIME + 1 }),
      refused({ position: 4, payload: '[]' }),
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
    await prepareRejectedEvents(payloads.map((payload, position) => refused({ position, payload })))(
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
    const rows = [0, 1, 2].map((position) => refused({ position }));
    await prepareRejectedEvents(rows)(database.warehouse);
    await prepareRejectedEvents(rows)(database.warehouse);
    const [third, , first] = await open();
    await settleRejections(database.shards, third && first ? [third, first] : [], 'discarded');
    expect(await positions()).toEqual([1]);
    expect(await storedRows()).toBe(2);
  });

  it('keeps its word when the job is delivered again afterwards', async () => {
    const rows = [0, 1].map((position) => refused({ position }));
    await prepareRejectedEvents(rows)(database.warehouse);
    const [second] = await open();
    await settleRejections(database.shards, second ? [second] : [], 'replayed');
    await prepareRejectedEvents(rows)(database.warehouse);
    expect(await positions()).toEqual([0]);
    expect(await countOpenRejections(database.warehouse, { jobId })).toBe(1);
  });

  it('again changes nothing', async () => {
    await prepareRejectedEvents([refused()])(database.warehouse);
    const ids = await open();
    await settleRejections(database.shards, ids, 'replayed');
    await expect(settleRejections(database.shards, ids, 'replayed')).resolves.toBeUndefined();
    expect(await open()).toEqual([]);
  });

  it('of nothing does nothing', async () => {
    await expect(settleRejections(database.shards, [], 'discarded')).resolves.toBeUndefined();
  });

  it('does not touch another job that says the same at the same time', async () => {
    await prepareRejectedEvents([refused(), refused({ jobId: `${jobId}-other` })])(database.warehouse);
    await settleRejections(database.shards, await open(), 'discarded');
    expect(await open({ jobId: `${jobId}-other` })).toHaveLength(1);
  });
});
