import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Budget } from './budget.js';

/** Takes the amounts in this order, and says which were served. */
function takeAll(budget: Budget, amounts: readonly number[]) {
  const served: number[] = [];
  const claims = amounts.map((amount, index) =>
    budget.take(amount).then((claim) => {
      served.push(index);
      return claim;
    }),
  );
  return { served, claims };
}

/** Until every promise that can settle has. */
const settled = () => new Promise<void>((resolve) => setImmediate(resolve));

describe('a budget', () => {
  it('serves claims while there is room, and then as others are released, in their order', async () => {
    const { served, claims } = takeAll(new Budget(() => 10), [4, 6, 1, 9]);
    await settled();
    expect(served).toEqual([0, 1]);
    (await claims[1])?.release();
    await settled();
    expect(served).toEqual([0, 1, 2]);
    (await claims[0])?.release();
    await settled();
    expect(served).toEqual([0, 1, 2, 3]);
  });

  it('passes over no large claim for a small one', async () => {
    const { served } = takeAll(new Budget(() => 10), [5, 6, 1]);
    await settled();
    expect(served).toEqual([0]);
  });

  it('serves a claim above the limit when nothing else is in use', async () => {
    const { served, claims } = takeAll(new Budget(() => 10), [1, 100, 1]);
    await settled();
    expect(served).toEqual([0]);
    (await claims[0])?.release();
    await settled();
    expect(served).toEqual([0, 1]);
    (await claims[1])?.release();
    await settled();
    expect(served).toEqual([0, 1, 2]);
  });

  it('refuses to be given back a claim twice', async () => {
    const claim = await new Budget(() => 1).take(1);
    claim.release();
    expect(() => claim.release()).toThrow('released twice');
  });
});

describe('a claim that waits for so long only', () => {
  beforeEach(() => {
    jest.useFakeTimers();
  });
  afterEach(() => {
    jest.useRealTimers();
  });

  it('is served in its time', async () => {
    const budget = new Budget(() => 1);
    const first = await budget.take(1);
    const second = budget.takeWithin(1, 100);
    jest.advanceTimersByTime(99);
    first.release();
    expect(await second).toBeDefined();
    expect(budget.used).toBe(1);
  });

  it('gives up after it, and those behind it are served', async () => {
    const budget = new Budget(() => 10);
    await budget.take(5);
    const large = budget.takeWithin(6, 100);
    const small = budget.take(5);
    jest.advanceTimersByTime(100);
    expect(await large).toBeUndefined();
    expect(await small).toBeDefined();
    expect(budget.used).toBe(10);
  });
});
