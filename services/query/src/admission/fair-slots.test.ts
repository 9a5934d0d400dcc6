import { describe, expect, it } from '@jest/globals';
import type { Party } from '@meterline/api';
import { FairSlots, type Release, type SlotLimits } from './fair-slots.js';

const A: Party = { account: 'a', caller: 'ann' };
const ANOTHER_OF_A: Party = { account: 'a', caller: 'alex' };
const B: Party = { account: 'b', caller: 'ben' };
const MANY: SlotLimits = { process: 100, account: 100, caller: 100 };
const NEVER = new AbortController().signal;

/** Slots, and in which order those that wait are served. */
function scene(limits: Partial<SlotLimits>) {
  const slots = new FairSlots({ ...MANY, ...limits });
  const served: string[] = [];
  const releases: Release[] = [];
  const queue = (name: string, party: Party, signal = NEVER) =>
    slots.take(party, signal).then((release) => {
      served.push(name);
      releases.push(release);
    });
  return {
    slots,
    served,
    queue,
    /** Gives back the slot that was served first, and lets the one that gets it record that. */
    releaseOne: async () => {
      await new Promise(setImmediate);
      releases.shift()?.();
      await new Promise(setImmediate);
    },
  };
}

describe('a waiting request', () => {
  it('is served in turn by account: B second, not behind all of A', async () => {
    const { queue, served, releaseOne } = scene({ process: 1 });
    for (const name of ['a0', 'a1', 'a2', 'a3', 'a4']) void queue(name, A);
    void queue('b1', B);
    await releaseOne();
    await releaseOne();
    await releaseOne();
    expect(served).toEqual(['a0', 'a1', 'b1', 'a2']);
  });

  it('is served in turn by caller within an account', async () => {
    const { queue, served, releaseOne } = scene({ process: 1 });
    for (const name of ['ann 0', 'ann 1', 'ann 2', 'ann 3']) void queue(name, A);
    void queue('alex 1', ANOTHER_OF_A);
    void queue('alex 2', ANOTHER_OF_A);
    for (let index = 0; index < 5; index += 1) await releaseOne();
    expect(served).toEqual(['ann 0', 'ann 1', 'alex 1', 'ann 2', 'alex 2', 'ann 3']);
  });

  it('is passed by one that has not used up what it may have', async () => {
    const { queue, served, slots } = scene({ process: 3, account: 2 });
    for (const name of ['a0', 'a1', 'a2']) void queue(name, A);
    void queue('b1', B);
    await new Promise(setImmediate);
    expect(served).toEqual(['a0', 'a1', 'b1']);
    expect([slots.inUse, slots.waitingOf('a'), slots.waitingOf('b')]).toEqual([3, 1, 0]);
  });

  it('may be a colleague where one caller has its share', async () => {
    const { queue, served } = scene({ account: 3, caller: 2 });
    for (const name of ['ann 0', 'ann 1', 'ann 2']) void queue(name, A);
    void queue('alex', ANOTHER_OF_A);
    await new Promise(setImmediate);
    expect(served).toEqual(['ann 0', 'ann 1', 'alex']);
  });

  it('and leaves, leaves nothing behind', async () => {
    const { queue, served, slots, releaseOne } = scene({ process: 1 });
    void queue('a0', A);
    const gone = new AbortController();
    const leaving = queue('a1', A, gone.signal);
    gone.abort(new Error('gone'));
    await expect(leaving).rejects.toThrow('gone');
    expect(slots.waitingOf('a')).toBe(0);
    await releaseOne();
    expect([served, slots.inUse]).toEqual([['a0'], 0]);
  });
});

describe('a slot', () => {
  it('is had at once only when nobody of the account waits for one', () => {
    const { slots, queue } = scene({ process: 2, caller: 1 });
    const release = slots.tryTake(A);
    expect(release).toBeDefined();
    expect(slots.tryTake(A)).toBeUndefined();
    void queue('a1', A);
    expect(slots.tryTake(ANOTHER_OF_A)).toBeUndefined();
    expect(slots.tryTake(B)).toBeDefined();
  });

  it('that is given back twice counts once', () => {
    const { slots } = scene({ process: 2 });
    const release = slots.tryTake(A);
    slots.tryTake(B);
    release?.();
    release?.();
    expect(slots.inUse).toBe(1);
  });
});
