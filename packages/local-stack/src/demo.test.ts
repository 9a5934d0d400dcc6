import { expect, it } from '@jest/globals';
import { parseUsageEvent } from '@meterline/catalog/plain';
import { testFolder } from '../../../test/harness/test-folder.js';
import { writePrivateFile } from './data-directory.js';
import { eventsOfSpan, readDemoState, SLICE_MS, spansUntil } from './demo.js';

const DAY = 24 * 3_600_000;
const NOON = Date.UTC(2026, 9, 1, 12);

const folder = testFolder('each test');

it('a database that the demo has not met has all its history ahead, and the last one goes on', async () => {
  const file = folder('demo.json');
  const fresh = { databaseId: 'embedded', firstHour: NOON, next: NOON - 92 * DAY };
  expect(await readDemoState(file, 'embedded', NOON + 59_000)).toEqual(fresh);
  const done = { ...fresh, next: NOON };
  await writePrivateFile(file, done);
  expect(await readDemoState(file, 'embedded', NOON + DAY)).toEqual(done);
  expect(await readDemoState(file, 'own', NOON)).toEqual({ ...fresh, databaseId: 'own' });
});

it('whole hours that are over are one span each, and the hour that runs has slices', () => {
  const now = NOON + 2 * 3_600_000 + 25_000;
  const spans = [...spansUntil(NOON, now)];
  expect(spans.map(({ from, to }) => [from - NOON, to - from])).toEqual([
    [0, 3_600_000],
    [3_600_000, 3_600_000],
    [7_200_000, SLICE_MS],
    [7_210_000, SLICE_MS],
  ]);
  // A start within an hour has slices to its end.
  expect([...spansUntil(NOON + 3_585_000, now)].map(({ from }) => from - NOON)).toEqual([
    ...[3_585_000, 3_590_000, 3_600_000, 7_200_000, 7_210_000],
  ]);
});

it('the events of a span are the same whenever they are asked for, and the worker accepts them', () => {
  const events = eventsOfSpan('demo', { from: NOON - SLICE_MS, to: NOON }, NOON);
  expect(events.length).toBeGreaterThan(10);
  expect(eventsOfSpan('demo', { from: NOON - SLICE_MS, to: NOON }, NOON)).toEqual(events);
  expect(events.filter((event) => !parseUsageEvent(event, NOON).ok)).toEqual([]);
});
