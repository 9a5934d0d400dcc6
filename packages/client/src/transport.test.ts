import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { LONGEST_WAIT_MS, waitBeforeRetry } from './transport.js';

describe('the wait before another attempt', () => {
  it('doubles, up to eight seconds, and spreads over the whole of it', () => {
    const almostOne = 1 - 2 ** -53;
    expect([0, 1, 2, 5, 9].map((attempt) => waitBeforeRetry(attempt, undefined, almostOne))).toEqual([
      250, 500, 1_000, 8_000, 8_000,
    ]);
    expect(waitBeforeRetry(9, undefined, 0)).toBe(0);
  });

  it('is never shorter than the service asks for, and not much longer', () => {
    const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
    fc.assert(
      fc.property(fc.nat(20), fc.nat(LONGEST_WAIT_MS), random, (attempt, asked, luck) => {
        const wait = waitBeforeRetry(attempt, asked, luck) ?? -1;
        expect(wait).toBeGreaterThanOrEqual(asked);
        expect(wait).toBeLessThanOrEqual(asked + 250);
      }),
    );
  });

  it('is undefined when the service asks for more than the longest wait', () => {
    expect(waitBeforeRetry(0, LONGEST_WAIT_MS + 1, 0)).toBeUndefined();
  });
});
