import { expect, it } from '@jest/globals';
import { FairPermits, type PermitLimits, type Release } from './fair-permits.js';
import type { Principal } from './principal.js';

const A: Principal = { account: 'a', caller: 'ann' };
const ANOTHER_OF_A: Principal = { account: 'a', caller: 'alex' };
const B: Principal = { account: 'b', caller: 'ben' };
const MANY: PermitLimits = { process: 100, account: 100, caller: 100 };

/** Permits, and the order in which waiting requests get them. */
function harness(limits: Partial<PermitLimits>) {
  let nowMs = 0;
  const permits = new FairPermits({ ...MANY, ...limits }, () => nowMs);
  const served: string[] = [];
  const releases: Release[] = [];
  const queue = (name: string, principal: Principal, signal = new AbortController().signal) =>
    permits.acquire(principal, signal).then((release) => {
      served.push(name);
      releases.push(release);
    });
  return {
    permits,
    served,
    queue,
    /** Lets an account hold a permit for this time. */
    work: (account: string, ms: number) => {
      const release = permits.tryAcquire({ account, caller: 'c' });
      nowMs += ms;
      release?.();
    },
    /** Gives back the permit that was served first, and lets the one that gets it record that. */
    releaseOne: async () => {
      await new Promise(setImmediate);
      releases.shift()?.();
      await new Promise(setImmediate);
    },
  };
}

it('a waiting request is served in turn by account: B second, not behind all of A', async () => {
  const { queue, served, releaseOne } = harness({ process: 1 });
  for (const name of ['a0', 'a1', 'a2', 'a3', 'a4']) void queue(name, A);
  void queue('b1', B);
  await releaseOne();
  await releaseOne();
  await releaseOne();
  expect(served).toEqual(['a0', 'a1', 'b1', 'a2']);
});

it('a waiting request is served in turn by caller within an account', async () => {
  const { queue, served, releaseOne } = harness({ process: 1 });
  for (const name of ['ann 0', 'ann 1', 'ann 2', 'ann 3']) void queue(name, A);
  void queue('alex 1', ANOTHER_OF_A);
  void queue('alex 2', ANOTHER_OF_A);
  for (let index = 0; index < 5; index += 1) await releaseOne();
  expect(served).toEqual(['ann 0', 'ann 1', 'alex 1', 'ann 2', 'alex 2', 'ann 3']);
});

it('a waiting request is passed by one that has not used up what it may have', async () => {
  const { queue, served, permits } = harness({ process: 3, account: 2 });
  for (const name of ['a0', 'a1', 'a2']) void queue(name, A);
  void queue('b1', B);
  await new Promise(setImmediate);
  expect(served).toEqual(['a0', 'a1', 'b1']);
  expect([permits.inUse, permits.waitingOf('a'), permits.waitingOf('b')]).toEqual([3, 1, 0]);
});

it('a waiting request passes those of a colleague who has its share', async () => {
  const { queue, served } = harness({ account: 3, caller: 2 });
  for (const name of ['ann 0', 'ann 1', 'ann 2']) void queue(name, A);
  void queue('alex', ANOTHER_OF_A);
  await new Promise(setImmediate);
  expect(served).toEqual(['ann 0', 'ann 1', 'alex']);
});

it('a waiting request of an account that holds no permit is served before those of accounts that hold some, however long these wait', async () => {
  const { queue, served, releaseOne } = harness({ process: 4 });
  const principals = Array.from({ length: 3 }, (_, n) => ({ account: `greedy ${n}`, caller: 'c' }));
  for (const principal of [...principals, ...principals, ...principals]) void queue(principal.account, principal);
  void queue('b1', B);
  await releaseOne();
  // One of the two permits of an account was released, so the first two hold one each, as the third does.
  expect(served.slice(4)).toEqual(['b1']);
});

it('half of the permits are reserved for accounts whose work is usually short', async () => {
  const { queue, served, work } = harness({ process: 8, longMs: 10 });
  work('a', 11);
  work('b', 10);
  for (let n = 0; n < 8; n += 1) void queue(`a${n}`, A);
  void queue('unknown', { account: 'unknown', caller: 'c' });
  for (let n = 0; n < 5; n += 1) void queue(`b${n}`, B);
  await new Promise(setImmediate);
  expect(served).toEqual(['a0', 'a1', 'a2', 'a3', 'b0', 'b1', 'b2', 'b3']);
});

it('an account without recent work gets the next permit although accounts with short work keep all in use', async () => {
  const { queue, served, releaseOne, work } = harness({ process: 2, longMs: 10 });
  work('a', 1);
  for (let n = 0; n < 6; n += 1) void queue(`a${n}`, A);
  void queue('new', B);
  await releaseOne();
  expect(served).toEqual(['a0', 'a1', 'new']);
});

it('of accounts that hold equally many permits, the one that has used least comes first', async () => {
  const { queue, served, releaseOne, work } = harness({ process: 1 });
  work('a', 3);
  work('c', 2);
  work('b', 1);
  for (const account of ['new', 'a', 'c', 'b', 'c']) void queue(account, { account, caller: 'c' });
  for (let n = 0; n < 5; n += 1) await releaseOne();
  expect(served).toEqual(['new', 'b', 'c', 'c', 'a']);
});

it('what an account used while no other account waited does not delay it later', async () => {
  const { queue, served, releaseOne, work } = harness({ process: 1 });
  for (let n = 0; n < 3; n += 1) work('a', 100);
  void queue('a', A);
  for (let n = 0; n < 3; n += 1) void queue('b', B);
  void queue('a', A);
  for (let n = 0; n < 4; n += 1) await releaseOne();
  expect(served).toEqual(['a', 'b', 'a', 'b', 'b']);
});

it('a waiting request that is given up leaves nothing behind', async () => {
  const { queue, served, permits, releaseOne } = harness({ process: 1 });
  void queue('a0', A);
  const gone = new AbortController();
  const leaving = queue('a1', A, gone.signal);
  gone.abort(new Error('gone'));
  await expect(leaving).rejects.toThrow('gone');
  expect(permits.waitingOf('a')).toBe(0);
  await releaseOne();
  expect([served, permits.inUse]).toEqual([['a0'], 0]);
});

it('a permit is available at once only if no other request of the account waits', () => {
  const { permits, queue } = harness({ process: 2, caller: 1 });
  const release = permits.tryAcquire(A);
  expect(release).toBeDefined();
  expect(permits.tryAcquire(A)).toBeUndefined();
  void queue('a1', A);
  expect(permits.tryAcquire(ANOTHER_OF_A)).toBeUndefined();
  expect(permits.tryAcquire(B)).toBeDefined();
});

it('a permit that is released twice counts once', () => {
  const { permits } = harness({ process: 2 });
  const release = permits.tryAcquire(A);
  permits.tryAcquire(B);
  release?.();
  release?.();
  expect(permits.inUse).toBe(1);
});
