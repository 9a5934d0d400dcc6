import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { formatOversizedPayload } from '@meterline/catalog';
import {
  countOpenRejections,
  preparePayloadPart,
  prepareRejectedEvents,
  readOpenRejections,
  readRejectionPayloads,
} from '@meterline/warehouse';
import { createTestDatabase, select, type TestDatabase } from '../../../test/stack.js';
import { discardRejections, readData } from './rejections.js';
import { resendable } from './resendable.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

const RECEIVED = Date.UTC(2026, 0, 1);
/** Neither part is text by itself, and one byte is not text at all. */
const DATA = Buffer.concat([Buffer.from('{"events":["€'), Buffer.from([0xff]), Buffer.from('"]}')]);
const MIDDLE = 13;

async function refuse(jobId: string) {
  const { warehouse } = database;
  const sha256 = createHash('sha256').update(DATA).digest('hex');
  const parts = [DATA.subarray(0, MIDDLE), DATA.subarray(MIDDLE)];
  for (const [part, content] of parts.entries()) {
    await preparePayloadPart({ receivedAt: RECEIVED, jobId, sha256, part, content })(warehouse);
  }
  const payload = formatOversizedPayload({ head: '{"events"', bytes: DATA.length, sha256 });
  const refusal = { receivedAt: RECEIVED, jobId, position: 0, accountId: '', message: 'too large', payload };
  await prepareRejectedEvents([{ ...refusal, reason: 'job_oversized' }])(warehouse);
}

const partsKept = async () => (await select(database.warehouse, 'SELECT part FROM rejected_payloads')).length;

it('the data of a job that is too large is read back byte by byte, and goes with its refusal alone', async () => {
  const { warehouse } = database;
  await refuse('a');
  await refuse('b');
  const [rejection] = await readOpenRejections(warehouse, { jobId: 'a' }, { limit: 1 });
  if (!rejection) throw new Error('the refusal is not listed');
  const [payload = ''] = await readRejectionPayloads(warehouse, [rejection]);
  const read: Uint8Array[] = [];
  for await (const part of readData(warehouse, rejection, payload)) read.push(part);
  expect(Buffer.concat(read)).toEqual(DATA);

  expect(await partsKept()).toBe(4);
  const selection = { filter: { jobId: 'a' } };
  const signal = new AbortController().signal;
  await discardRejections({
    shards: database.shards,
    selection,
    signal,
    onKept: () => undefined,
    onDiscarded: () => undefined,
  });
  expect([await countOpenRejections(warehouse, {}), await partsKept()]).toEqual([1, 2]);
});

it('it is not sent again as it is, and the reason says what to do', () => {
  const refusal = { reason: 'job_oversized', position: 0 } as const;
  const edits = { set: new Map(), unset: new Set<string>() };
  expect(resendable(refusal, '{"head":"","bytes":1,"sha256":""}', undefined, edits)).toMatchObject({
    kind: 'unsendable',
    why: expect.stringContaining('rejected show ID --payload'),
  });
});
