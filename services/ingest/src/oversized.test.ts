import { createHash } from 'node:crypto';
import { expect, it } from '@jest/globals';
import { parseOversizedPayload } from '@meterline/catalog';
import type { PayloadPart } from '@meterline/warehouse';
import { keepOversized, PART_BYTES } from './oversized.js';

const JOB = { id: '7', receivedAt: 1_000 };
const REJECTION = { reason: 'job_oversized', message: 'too large' } as const;

it('keeps all of the data in parts under its hash, and then refuses the job with its beginning', async () => {
  // No part ends at the end of a character.
  const text = '€'.repeat(PART_BYTES);
  const kept: PayloadPart[] = [];
  const intake = await keepOversized({ job: JOB, read: () => [Buffer.from(text)] }, REJECTION, async (part) => {
    kept.push(part);
  });
  const sha256 = createHash('sha256').update(text).digest('hex');
  expect(kept.map(({ content, ...key }) => ({ ...key, bytes: content.length }))).toEqual(
    [0, 1, 2].map((part) => ({ receivedAt: 1_000, jobId: '7', sha256, part, bytes: PART_BYTES })),
  );
  expect(Buffer.concat(kept.map(({ content }) => content)).toString()).toBe(text);
  expect(intake).toMatchObject({
    job: JOB,
    accepted: { length: 0 },
    rejected: [{ jobId: '7', position: 0, ...REJECTION }],
  });
  const payload = parseOversizedPayload(intake.rejected[0]?.payload ?? '');
  expect(payload).toMatchObject({ sha256, bytes: 3 * PART_BYTES });
  expect(text.startsWith(payload?.head.slice(0, 20_000) ?? '?')).toBe(true);
});

it('refuses nothing before all of the data is kept', async () => {
  const failing = async ({ part }: PayloadPart) => {
    if (part === 1) throw new Error('no room');
  };
  const source = { job: JOB, read: () => [Buffer.alloc(PART_BYTES), Buffer.alloc(1)] };
  await expect(keepOversized(source, REJECTION, failing)).rejects.toThrow('no room');
});
