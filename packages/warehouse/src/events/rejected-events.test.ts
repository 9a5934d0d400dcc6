import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/stack.js';
import { prepareRejectedEvents, type RejectedEvent } from './rejected-events.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const REJECTED: RejectedEvent = {
  receivedAt: Date.UTC(2025, 9, 1, 12, 0, 0, 7),
  jobId: '42',
  position: 4_999,
  accountId: 'acme',
  reason: 'invalid_usage',
  message: 'usage must be a number',
  payload: '{"usage":"much"}',
};

function stored(jobId: string) {
  const query = 'SELECT * FROM rejected_events FINAL WHERE job_id = {jobId: String} ORDER BY position';
  return select(database.warehouse, query, { jobId });
}

describe('rejected events', () => {
  it('are kept whole', async () => {
    await prepareRejectedEvents([REJECTED])(database.warehouse);
    expect(await stored('42')).toEqual([
      {
        received_at: '2025-10-01 12:00:00.007',
        job_id: '42',
        position: 4_999,
        account_id: 'acme',
        reason: 'invalid_usage',
        message: 'usage must be a number',
        payload: '{"usage":"much"}',
      },
    ]);
  });

  it('are kept once, however often the job is delivered', async () => {
    const rejected = [0, 1].map((position) => ({ ...REJECTED, jobId: 'again', position }));
    await prepareRejectedEvents(rejected)(database.warehouse);
    await prepareRejectedEvents(rejected)(database.warehouse);
    expect(await stored('again')).toHaveLength(2);
  });

  it('keep a payload of a megabyte', async () => {
    const payload = JSON.stringify({ text: '😀'.repeat(250_000) });
    await prepareRejectedEvents([{ ...REJECTED, jobId: 'large', payload }])(database.warehouse);
    expect(await stored('large')).toMatchObject([{ payload }]);
  });

  it('may be none', async () => {
    await expect(prepareRejectedEvents([])(database.warehouse)).resolves.toBeUndefined();
  });
});
