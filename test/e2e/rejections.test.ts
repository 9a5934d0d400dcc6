/** Refused events are kept, once, and do not affect others. */
import { createHash } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MAX_JOB_BYTES, MAX_JOB_VALUES, parseOversizedPayload } from '@meterline/catalog';
import { killServices, type LogEntry, type ServiceProcess, startIngest } from '../services.js';
import { select } from '../stack.js';
import {
  drained,
  enqueueData,
  enqueueRaw,
  openPipeline,
  type Pipeline,
  rejectedRows,
  stored,
  usageEvent,
  usageEvents,
} from './pipeline.js';

jest.setTimeout(180_000);

let pipeline: Pipeline;
let ingest: ServiceProcess;
beforeAll(async () => {
  pipeline = await openPipeline();
  ingest = await startIngest(pipeline.env);
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
});

let accounts = 0;
let accountId: string;
beforeEach(() => {
  accounts += 1;
  accountId = `account-${accounts}`;
});

/** An event of this test's own account. */
const good = (n: number) => usageEvent(n, { accountId });

describe('ingest, given events that it cannot accept', () => {
  it('keeps bad events of a job with their position and the event as it was sent, and stores the others', async () => {
    const bad = { ...good(2), usage: -1 };
    const job = await enqueueData(pipeline.queue, {
      events: [good(1), bad, good(3), 'text', good(5)],
    });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 3 });
    expect(await rejectedRows(pipeline.warehouse, job)).toMatchObject([
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
  ])('keeps a whole job that contains %s, between good ones', async (_, data, reason) => {
    await enqueueData(pipeline.queue, good(1));
    const job = await enqueueData(pipeline.queue, data);
    await enqueueData(pipeline.queue, good(2));
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 2 });
    const rows = await rejectedRows(pipeline.warehouse, job);
    expect(rows).toMatchObject([{ job_id: job, position: 0, reason, payload: JSON.stringify(data) }]);
  });

  it('takes 5,000 events in a job', async () => {
    await enqueueData(pipeline.queue, { events: usageEvents(0, 5_000).map((event) => ({ ...event, accountId })) });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 5_000 });
  });

  it('keeps the raw text of a job that is not JSON', async () => {
    const job = await enqueueRaw(pipeline, { data: '{"eventId": oops' });
    await enqueueData(pipeline.queue, good(1));
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
    expect(await rejectedRows(pipeline.warehouse, job)).toMatchObject([
      { job_id: job, reason: 'job_not_an_object', payload: '{"eventId": oops' },
    ]);
  });

  it('keeps an event that is nested deeper than the stack', async () => {
    const deep = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;
    const job = await enqueueRaw(pipeline, { data: `{"events":[${JSON.stringify(good(1))},${deep}]}` });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
    const rows = await rejectedRows(pipeline.warehouse, job);
    expect(rows).toMatchObject([{ job_id: job, position: 1, reason: 'event_not_an_object' }]);
    expect(rows[0]?.payload).toContain(deep);
  });

  it('keeps the data of a job that is too large to be read, and takes other jobs meanwhile', async () => {
    const text = `{"events":[${'{},'.repeat(MAX_JOB_BYTES / 3)}{}]}`;
    await pipeline.queue.pause();
    const jobs: string[] = [];
    for (let n = 0; n < 2; n += 1) {
      jobs.push(await enqueueRaw(pipeline, { data: text }));
      await pipeline.queue.pause();
    }
    await enqueueData(pipeline.queue, good(1));
    await pipeline.queue.resume();
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
    for (const job of jobs) {
      const [row, ...others] = await rejectedRows(pipeline.warehouse, job);
      expect([row?.reason, others.length]).toEqual(['job_oversized', 0]);
      const kept = parseOversizedPayload(row?.payload ?? '');
      expect(kept).toMatchObject({ bytes: text.length, sha256: createHash('sha256').update(text).digest('hex') });
      const [parts] = await select<{ sha256: string }>(
        pipeline.warehouse,
        `SELECT lower(hex(SHA256(arrayStringConcat(arrayMap(part -> part.2, arraySort(groupArray((part, content)))))))) AS sha256
         FROM rejected_payloads FINAL WHERE job_id = {job: String}`,
        { job },
      );
      expect(parts?.sha256).toBe(kept?.sha256);
      expect(await pipeline.queue.getJob(job)).toBeUndefined();
    }
  });

  it('keeps the data of a job with too many values without parsing it', async () => {
    const text = `{"events":[${'{},'.repeat(MAX_JOB_VALUES)}{}]}`;
    const job = await enqueueRaw(pipeline, { data: text });
    await enqueueData(pipeline.queue, good(1));
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
    const rows = await rejectedRows(pipeline.warehouse, job);
    expect(rows).toMatchObject([{ job_id: job, reason: 'job_oversized' }]);
    expect(parseOversizedPayload(rows[0]?.payload ?? '')).toMatchObject({ bytes: text.length });
  });

  it.each([
    ['opts', { opts: '{oops' }],
    ['opts', { opts: 'null' }],
    ['parent', { parent: '{oops', parentKey: 'bull:flows:1' }],
    ['parent', { parent: '5' }],
    ['parentKey', { parentKey: 'x' }],
    ['rjk', { rjk: 'a:b:c:d:e' }],
    ['rjk', { rjk: 'plain' }],
    ['ats', { ats: 'x' }],
  ])('takes the events of a job whose field %s BullMQ cannot read, and names the job', async (field, fields) => {
    const jobs = [
      { ...fields, data: JSON.stringify(good(1)) },
      { ...fields, data: '{"oops' },
    ];
    const ids = [];
    for (const job of jobs) ids.push(await enqueueRaw(pipeline, job));
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
    expect(await rejectedRows(pipeline.warehouse, ids[1] ?? '')).toMatchObject([{ payload: '{"oops' }]);
    for (const jobId of ids) {
      const named = (entry: LogEntry) => entry.event === 'job_unreadable' && entry.jobId === jobId;
      expect((await ingest.entry(named)).fields).toContain(field);
    }
  });

  it('takes a job with other fields that nobody needs, whatever they are', async () => {
    // Lua reads this number, though it is not JSON.
    const opts = '{"delay":nan}';
    const junk = {
      opts,
      progress: '{oops',
      defa: 'a child failed',
      returnvalue: '{',
      stacktrace: '{',
      priority: 'x',
      stc: 'x',
    };
    await enqueueRaw(pipeline, { ...junk, data: JSON.stringify(good(1)) });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
  });

  it.each(['9'.repeat(20), `-${'9'.repeat(20)}`, '-1', 'yesterday'])(
    'keeps a refused event of a job with the timestamp %s',
    async (timestamp) => {
      const job = await enqueueRaw(pipeline, { data: '"text"', timestamp });
      await enqueueData(pipeline.queue, good(1));
      await drained(pipeline.queue);
      expect(await rejectedRows(pipeline.warehouse, job)).toMatchObject([{ job_id: job }]);
    },
  );

  it('shows every refused event once after the job is delivered again', async () => {
    const data = { events: [good(1), 'a', 'b'] };
    const job = await enqueueData(pipeline.queue, data);
    await drained(pipeline.queue);
    await (await pipeline.queue.getJob(job))?.retry('completed');
    await drained(pipeline.queue);
    expect(await pipeline.queue.getJob(job)).toMatchObject({ attemptsStarted: 2 });
    expect(await rejectedRows(pipeline.warehouse, job)).toMatchObject([{ position: 1 }, { position: 2 }]);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 1 });
  });
});
