import { describe, expect, it } from '@jest/globals';
import { limitField, policyField } from './limits.js';
import { LocalRate } from './shared-limits.js';

const LIMIT = { perSecond: 10, burst: 3 };

describe('a rate', () => {
  const a = { key: 'a', limit: LIMIT };
  const b = { key: 'b', limit: LIMIT };

  it('allows a burst, then one request for each interval', () => {
    const rate = new LocalRate();
    const at = (ms: number) => rate.count([a], ms)[0];
    expect([at(0), at(0), at(0)]).toEqual([2, 1, 0].map((remaining) => ({ waitMs: 0, remaining })));
    expect(at(0)).toEqual({ waitMs: 100, remaining: 0 });
    expect(at(60)).toEqual({ waitMs: 40, remaining: 0 });
    expect(at(100)).toEqual({ waitMs: 0, remaining: 0 });
    expect(at(100)).toMatchObject({ waitMs: 100 });
  });

  it('allows no more than a burst after any rest', () => {
    const rate = new LocalRate();
    rate.count([a], 0);
    expect(rate.count([a], 1e9)).toEqual([{ waitMs: 0, remaining: 2 }]);
  });

  it('of one key is not that of another', () => {
    const rate = new LocalRate();
    for (let index = 0; index < 3; index += 1) rate.count([a], 0);
    expect(rate.count([b], 0)).toEqual([{ waitMs: 0, remaining: 2 }]);
  });

  it('counts a request that another one refuses nowhere', () => {
    const rate = new LocalRate();
    for (let index = 0; index < 3; index += 1) rate.count([a], 0);
    expect(rate.count([a, b], 0)).toEqual([
      { waitMs: 100, remaining: 0 },
      { waitMs: 0, remaining: 2 },
    ]);
    expect(rate.count([b], 0)).toEqual([{ waitMs: 0, remaining: 2 }]);
  });
});

describe('the fields', () => {
  const limits = {
    account: 3,
    caller: 2,
    accountRate: { perSecond: 100, burst: 400 },
    callerRate: { perSecond: 50, burst: 20 },
  };

  it('name every limit', () => {
    expect(policyField(limits)).toBe(
      '"account";q=400;w=4, "caller";q=20;w=1, "account-statements";q=3;qu="concurrent-requests", "caller-statements";q=2;qu="concurrent-requests"',
    );
  });

  it('say what is left, and when there is more', () => {
    const states = { account: { waitMs: 0, remaining: 399 }, caller: { waitMs: 2_100, remaining: 0 } };
    expect(limitField(states, limits)).toBe('"account";r=399;t=1, "caller";r=0;t=3');
    expect(limitField(states, limits, 'caller-statements')).toMatch(/, "caller-statements";r=0$/);
  });
});
