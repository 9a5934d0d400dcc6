import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { readDemoState, writeDemoState } from './demo.js';

const DAY = 24 * 3_600_000;
const NOON = Date.UTC(2026, 9, 1, 12);

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-demo-'));
});
afterEach(() => rm(directory, { recursive: true }));

it('a database that the demo has not met has all its history ahead, whatever another one has', async () => {
  const file = join(directory, 'demo-history.json');
  const own = { file, databaseId: 'own' };
  const embedded = { file, databaseId: 'embedded' };
  const fresh = { firstHour: NOON, nextHour: NOON - 92 * DAY };
  expect(await readDemoState(embedded, NOON + 59_000)).toEqual(fresh);

  const done = { firstHour: NOON, nextHour: NOON };
  await writeDemoState(embedded, done);
  expect(await readDemoState(own, NOON)).toEqual(fresh);
  await writeDemoState(own, { ...done, nextHour: NOON + 3_600_000 });
  expect(await readDemoState(embedded, NOON + DAY)).toEqual(done);
});
