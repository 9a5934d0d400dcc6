/** Erases accounts to the last row in the files, keeps and settles rejected events, and reads events to re-price. The commands: test/cli/{operators,rejected}. */
import { beforeEach, describe, expect, it } from '@jest/globals';
import { MAX_JOB_BYTES } from '@meterline/catalog';
import { pricedEvent } from '../../../../test/harness/events.js';
import { execute, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import type { PricedEvent } from '../events/event-rows.js';
import { insertUsageEvents } from '../events/usage-events.js';
import { eraseAccountPartition, readAccountPartitions, removeDeletedRejections } from './account-erasure.js';
import {
  type OpenRejection,
  prepareRejectedEvents,
  type RejectedEvent,
  type RejectionFilter,
  readOpenRejections,
  readRejectionPayloads,
  settleRejections,
} from './rejections.js';
import { type EventKey, readDimensionSpans, readRepricingStep } from './repricing.js';

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

// First, where nothing else has events of its accounts.
describe('erasure', () => {
  const OCTOBER = Date.UTC(2025, 9, 1);
  const NOVEMBER = Date.UTC(2025, 10, 1);

  /** Rows in the files, those that are only marked as deleted included. */
  async function rowsOf(table: string, accountId: string): Promise<number> {
    const query = `SELECT toUInt32(count()) AS rows FROM {table: Identifier} WHERE account_id = {accountId: String}
                   SETTINGS apply_deleted_mask = 0`;
    return (await select<{ rows: number }>(database.warehouse, query, { table, accountId }))[0]?.rows ?? -1;
  }

  const partitionsOf = (accountId: string) => readAccountPartitions(database.shards.all, accountId);

  it("erasing takes a month's rows out of the files, and none of other months and accounts", async () => {
    const events = [OCTOBER, NOVEMBER].map((timestamp) => pricedEvent({ timestamp }));
    await insertUsageEvents(database.warehouse, [...events, pricedEvent({ accountId: 'zeta', timestamp: OCTOBER })]);
    await reject({ accountId: 'acme' }, { accountId: 'zeta' });
    const [october, ...others] = await partitionsOf('acme');
    if (october) await eraseAccountPartition(october, 'acme');
    expect(await partitionsOf('acme')).toEqual(others);
    for (const partition of others) await eraseAccountPartition(partition, 'acme');
    for (const table of ['usage_events', 'rejected_events']) {
      expect([await rowsOf(table, 'acme'), await rowsOf(table, 'zeta')]).toEqual([0, 1]);
    }
  });

  it('erasing takes stored results about several accounts with it, which may have its groups', async () => {
    const owners = ['\0caller', 'shared', 'zeta'];
    const insert = 'INSERT INTO result_pages (account_id) SELECT arrayJoin({owners: Array(String)})';
    await execute(database.warehouse, insert, { owners });
    for (const partition of await partitionsOf('shared')) await eraseAccountPartition(partition, 'shared');
    expect(await Promise.all(owners.map((owner) => rowsOf('result_pages', owner)))).toEqual([0, 0, 1]);
  });

  it('removing takes rejections out of the files that settling has only marked', async () => {
    const open = () => readOpenRejections(database.warehouse, { accountId: 'marked' }, { limit: 9 });
    await reject({ accountId: 'marked' }, { accountId: 'marked' });
    const [second] = await open();
    await settleRejections(database.shards, second ? [second] : [], 'discarded');
    expect(await rowsOf('rejected_events', 'marked')).toBe(2);
    await removeDeletedRejections(database.shards.all);
    expect(await rowsOf('rejected_events', 'marked')).toBe(1);
    expect(await open()).toMatchObject([{ position: 0 }]);
  });
});

describe('rejections', () => {
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

  it('a rejected event keeps a payload that is larger than any job may be', async () => {
    const payload = JSON.stringify({ text: '😀'.repeat(MAX_JOB_BYTES / 4) });
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
    const others = [
      { reason: 'no_price' },
      { accountId: 'zeta' },
      { receivedAt: TIME + 1 },
      { payload: '[]' },
    ] as const;
    await reject({}, ...others);
    expect(await positions({ reason: 'no_price' })).toEqual([1]);
    expect(await positions({ accountId: 'zeta' })).toEqual([2]);
    expect(await positions({ from: TIME + 1 })).toEqual([3]);
    expect(await positions({ to: TIME + 1 })).toEqual([4, 2, 1, 0]);
    expect(await positions({ accountId: 'acme' })).toHaveLength(4);
  });

  it('payloads are returned in the order of the IDs, and undefined for a settled rejection', async () => {
    const payloads = ['{"a":1}', '{"a":2}', `"${'😀'.repeat(100_000)}"`];
    await reject(...payloads.map((payload) => ({ payload })));
    const ids = [...(await open()).reverse(), { receivedAt: TIME, fingerprint: 1n }];
    expect(await readRejectionPayloads(database.warehouse, ids)).toEqual([...payloads, undefined]);
    expect(await readRejectionPayloads(database.warehouse, [])).toEqual([]);
  });

  it('settling permanently removes exactly the given rejections, and none of another job', async () => {
    const other = `${jobId}-other`;
    const deliver = () => reject({}, {}, {});
    // A job may write its rejections twice.
    for (let time = 0; time < 2; time += 1) await deliver();
    await reject({ position: 0, jobId: other });
    const settled = (await open()).filter(({ position }) => position !== 1);
    await settleRejections(database.shards, settled, 'discarded');
    expect(await rows('DISTINCT position')).toEqual([{ position: 1 }]);
    for (const ids of [settled, []]) {
      await deliver();
      await settleRejections(database.shards, ids, 'replayed');
      expect(await positions()).toEqual([1]);
    }
    expect(await open({ jobId: other })).toHaveLength(1);
  });
});

describe('re-pricing', () => {
  const START = Date.UTC(2025, 9, 1, 0, 30);
  const END = Date.UTC(2025, 9, 2, 0, 30);
  const window = { startTime: START, endTime: END };
  const MINUTE = 60_000;

  function event(changes: Partial<PricedEvent>): PricedEvent {
    return pricedEvent({ timestamp: START, usage: 1_500_000_000n, cost: 17_250_000n, ...changes });
  }

  /** All events of the account in the window, read so many at a time. */
  async function readInSteps(accountId: string, limit: number): Promise<PricedEvent[]> {
    const events: PricedEvent[] = [];
    let last: EventKey | undefined;
    for (;;) {
      const step = await readRepricingStep(database.warehouse, { accountId, window }, last, limit);
      expect(step.length).toBeLessThanOrEqual(limit);
      if (step.length === 0) return events;
      events.push(...step);
      last = step.at(-1);
    }
  }

  it('steps give every field of an event', async () => {
    const whole = event({
      ...{ accountId: 'whole', resourceUuid: 'r-1', workspace: 'é\u2028"\\', timestamp: START + 7 },
      ...{ usage: 999_999_999_999_999_999_999_999n, cost: 10n ** 33n + 1n },
      ...{ revision: 65_535, priceRevision: 3, priceBook: 65_535 },
    });
    await insertUsageEvents(database.warehouse, [whole]);
    expect(await readInSteps('whole', 10)).toEqual([whole]);
  });

  it.each([1, 3, 100])('steps of at most %d events give every event once', async (limit) => {
    const accountId = `steps-${limit}`;
    // Random ids, two in an hour, over the end of a day.
    const events = Array.from({ length: 14 }, (_, n) =>
      event({ accountId, timestamp: START + (n >> 1) * 235 * MINUTE + n }),
    );
    await insertUsageEvents(database.warehouse, events);
    const ids = (await readInSteps(accountId, limit)).map(({ eventId }) => eventId);
    expect(ids.sort()).toEqual(events.map(({ eventId }) => eventId).sort());
  });

  it('steps and spans keep to the window and the account, and leave out what is voided and what was replaced', async () => {
    const accountId = 'kept';
    const [revised, voided, moved] = [
      event({ accountId, timestamp: START + MINUTE }),
      event({ accountId }),
      event({ accountId }),
    ];
    const outside = [event({ accountId, timestamp: START - 1 }), event({ accountId, timestamp: END }), event({})];
    await insertUsageEvents(database.warehouse, [...outside, revised, voided, moved]);
    const latest = { ...revised, usage: 2n, revision: 1 };
    await insertUsageEvents(database.warehouse, [
      latest,
      { ...voided, revision: 1, voided: true },
      // Within its hour, and out of the window.
      { ...moved, revision: 1, timestamp: START - MINUTE },
    ]);
    expect(await readInSteps(accountId, 10)).toEqual([latest]);
    const { eventId, timestamp } = latest;
    expect(await readDimensionSpans(database.warehouse, { accountId, window })).toEqual([
      { billingDimension: 'sandbox_compute_runtime_gbs', events: 1, first: { eventId, timestamp } },
    ]);
  });

  it('spans of dimensions count events and name the oldest, and are none where there is nothing', async () => {
    const accountId = 'spans';
    const job = { accountId, resourceType: 'job', billingDimension: 'job_compute_runtime_gbs' } as const;
    const [late, oldest] = [2, 1].map((minutes) => event({ ...job, timestamp: START + minutes * MINUTE }));
    const other = event({ accountId, timestamp: START + 3 * MINUTE });
    await insertUsageEvents(
      database.warehouse,
      [late, oldest, other].flatMap((each) => each ?? []),
    );
    const first = { eventId: oldest?.eventId, timestamp: oldest?.timestamp };
    expect(await readDimensionSpans(database.warehouse, { accountId, window })).toEqual([
      { billingDimension: 'job_compute_runtime_gbs', events: 2, first },
      expect.objectContaining({ billingDimension: 'sandbox_compute_runtime_gbs', events: 1 }),
    ]);
    expect(await readDimensionSpans(database.warehouse, { accountId: 'nobody', window })).toEqual([]);
  });
});
