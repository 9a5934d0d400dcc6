import { describe, expect, it } from '@jest/globals';
import { isConsuming } from './consumption.js';

const NOW = 10_000_000;
const LONG_AGO = NOW - 60_000;
const RECENTLY = NOW - 59_999;

describe('isConsuming', () => {
  it.each([
    ['nothing waits', { waitingJobs: 0, lastProgressAt: LONG_AGO, outage: false }, true],
    [
      'jobs wait and some was taken in the last minute',
      { waitingJobs: 5, lastProgressAt: RECENTLY, outage: false },
      true,
    ],
    ['jobs wait and none was taken for a minute', { waitingJobs: 5, lastProgressAt: LONG_AGO, outage: false }, false],
    ['jobs wait for a server that is away', { waitingJobs: 5, lastProgressAt: LONG_AGO, outage: true }, true],
  ])('when %s', (_, consumption, expected) => {
    expect(isConsuming(consumption, NOW)).toBe(expected);
  });
});
