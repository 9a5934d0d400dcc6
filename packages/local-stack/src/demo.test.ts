import { expect, it } from '@jest/globals';
import { MS_PER_DAY, MS_PER_HOUR, parseUsageEvent } from '@meterline/catalog/plain';
import { testFolder } from '../../../test/harness/test-folder.js';
import { writePrivateFile } from './data-directory.js';
import { openDemoState } from './demo.js';
import { eventsOfSpan, originAt, SLICE_MS, spansUntil } from './demo-usage.js';

const NOON = Date.UTC(2026, 9, 1, 12);
const AT_NOON = originAt(NOON);

const folder = testFolder('each test');

it('a new database starts with the complete history, and a later start continues from its origin', async () => {
  const file = folder('demo.json');
  const fresh = { databaseId: 'embedded', firstHour: NOON, liveFrom: NOON + 50_000, next: NOON - 92 * MS_PER_DAY };
  expect(await openDemoState(file, 'embedded', NOON + 59_000)).toEqual(fresh);
  expect(await openDemoState(file, 'embedded', NOON + MS_PER_HOUR)).toEqual(fresh);
  const done = { ...fresh, next: NOON };
  await writePrivateFile(file, done);
  expect(await openDemoState(file, 'embedded', NOON + MS_PER_DAY)).toEqual(done);
  expect(await openDemoState(file, 'own', NOON)).toEqual({ ...fresh, databaseId: 'own', liveFrom: NOON });
  await writePrivateFile(file, { databaseId: 'embedded', firstHour: NOON, next: NOON });
  expect(await openDemoState(file, 'embedded', NOON + MS_PER_DAY)).toEqual({ ...done, liveFrom: NOON });
});

it('past hours are one span each, and the current hour is split into slices', () => {
  const now = NOON + 2 * MS_PER_HOUR + 25_000;
  const spans = [...spansUntil(NOON, now, AT_NOON)];
  expect(spans.map(({ from, to }) => [from - NOON, to - from])).toEqual([
    [0, MS_PER_HOUR],
    [MS_PER_HOUR, MS_PER_HOUR],
    [2 * MS_PER_HOUR, SLICE_MS],
    [2 * MS_PER_HOUR + 10_000, SLICE_MS],
  ]);
  // A start in the middle of an hour has slices until the end of the hour.
  expect([...spansUntil(NOON + 3_585_000, now, AT_NOON)].map(({ from }) => from - NOON)).toEqual([
    ...[3_585_000, 3_590_000, 3_600_000, 7_200_000, 7_210_000],
  ]);
});

it('spans of the history are six hours long until eight days before the first start, and then one hour', () => {
  const now = NOON + MS_PER_HOUR + 90_000;
  const origin = originAt(now);
  const spans = [...spansUntil(origin.next, now + 20_000, origin)];
  const lengths = spans.map(({ from, to }) => (to - from) / MS_PER_HOUR);
  // It begins and ends one hour after a multiple of six hours.
  expect(lengths.slice(0, 6)).toEqual([1, 1, 1, 1, 1, 6]);
  expect(lengths.filter((hours) => hours === 6)).toHaveLength(84 * 4 - 1);
  expect(spans.findLast(({ from, to }) => to - from > MS_PER_HOUR)?.to).toBe(NOON - 8 * MS_PER_DAY);
  expect(spans.slice(-4).map(({ from, to }) => [from - NOON, to - from])).toEqual([
    [0, MS_PER_HOUR],
    [MS_PER_HOUR, 90_000],
    [MS_PER_HOUR + 90_000, SLICE_MS],
    [MS_PER_HOUR + 100_000, SLICE_MS],
  ]);
  expect(spans.every(({ to }, index) => index === spans.length - 1 || to === spans[index + 1]?.from)).toBe(true);
  expect(spans.flatMap((span) => eventsOfSpan('demo', span, origin)).length).toBeLessThan(15_000);
});

it('an interrupted history continues in the same spans, even in a later hour', () => {
  const origin = originAt(NOON + 90_000);
  const first = [...spansUntil(origin.next, NOON + 90_000, origin)];
  const later = NOON + 25 * MS_PER_HOUR + 25_000;
  const all = [...spansUntil(origin.next, later, origin)];
  expect(all.slice(0, first.length)).toEqual(first);
  for (const [index, { to }] of all.entries()) {
    if (index % 50 === 0) expect([...spansUntil(to, later, origin)]).toEqual(all.slice(index + 1));
  }
});

it('the events of a span are deterministic and valid', () => {
  const events = eventsOfSpan('demo', { from: NOON - SLICE_MS, to: NOON }, AT_NOON);
  expect(events.length).toBeGreaterThan(10);
  expect(eventsOfSpan('demo', { from: NOON - SLICE_MS, to: NOON }, AT_NOON)).toEqual(events);
  expect(events.filter((event) => !parseUsageEvent(event, NOON).ok)).toEqual([]);
});

it('a span of six hours has the sum of the usage of its hours', () => {
  const usage = (from: number, hours: number, name: string) =>
    eventsOfSpan('demo', { from, to: from + hours * MS_PER_HOUR }, AT_NOON)
      .filter(({ resourceName, billingDimension }) => resourceName === name && !billingDimension.endsWith('_count'))
      .reduce((total, event) => total + Number(event.usage), 0);
  // support-agent works in office hours, nightly-report at night, and load-test-sandbox ended 26 days before noon.
  for (const [name, daysAgo] of [
    ['support-agent', 40],
    ['nightly-report', 40],
    ['load-test-sandbox', 26],
  ] as const) {
    const hoursOf = (start: number) => [0, 1, 2, 3, 4, 5].map((hour) => usage(start + hour * MS_PER_HOUR, 1, name));
    for (const start of [-12, -6, 0, 6].map((hours) => NOON - daysAgo * MS_PER_DAY + hours * MS_PER_HOUR)) {
      const sum = hoursOf(start).reduce((total, hour) => total + hour, 0);
      expect(usage(start, 6, name)).toBeCloseTo(sum, 3);
    }
    expect(new Set(hoursOf(NOON - daysAgo * MS_PER_DAY - 12 * MS_PER_HOUR)).size).toBeGreaterThan(1);
  }
});
