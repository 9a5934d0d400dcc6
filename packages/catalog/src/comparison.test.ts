import { expect, it } from '@jest/globals';
import { exceededCap, type Window } from './calendar.js';
import { comparedWindow } from './comparison.js';

function window(start: string, end: string): Window {
  return { startTime: Date.parse(start), endTime: Date.parse(end) };
}

it.each([
  ['longer months, by days', window('2026-02-01', '2026-05-01'), 'daily'],
  ['a longer month, by hours', window('2026-02-23', '2026-03-01'), 'hourly'],
] as const)(
  'a window that ends with a month is compared with an equally long part of %s',
  (_what, requested, resolution) => {
    const compared = { window: requested, months: undefined, resolution, asOf: requested.endTime };
    const before = comparedWindow('months', compared)?.window ?? requested;
    expect([exceededCap(resolution, requested), exceededCap(resolution, before)]).toEqual([undefined, undefined]);
    expect(before.endTime - before.startTime).toBe(requested.endTime - requested.startTime);
  },
);
