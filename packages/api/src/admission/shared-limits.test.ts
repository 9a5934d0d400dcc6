/** What several processes share, each here with a connection of its own. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../../test/stack.js';
import { LEASE_MS, SharedLimits } from './shared-limits.js';

const A = { account: 'a', caller: 'ann' };
const COLLEAGUE = { account: 'a', caller: 'alex' };
const NAMESAKE = { account: 'b', caller: 'ann' };
const LIMITS = {
  // So slow that no test lasts until the next request is allowed.
  accountRate: { perSecond: 0.001, burst: 3 },
  callerRate: { perSecond: 0.001, burst: 2 },
  account: 3,
  caller: 2,
};
const COUNT = { counts: true, leases: false };
const LEASE = { counts: false, leases: true };

let connections: Redis[];
/** The test's own. */
let redis: Redis;
let prefix: string;
beforeEach(() => {
  connections = [];
  redis = new Redis(testRedisUrl());
  prefix = uniquePrefix();
});
afterEach(async () => {
  const keys = await redis.keys(`${prefix}*`);
  if (keys.length > 0) await redis.del(keys);
  for (const connection of [redis, ...connections]) connection.disconnect();
});

function openProcess(): SharedLimits {
  const redis = new Redis(testRedisUrl());
  connections.push(redis);
  return new SharedLimits(redis, prefix, LIMITS);
}

describe('requests', () => {
  it('of a caller are counted together by all processes', async () => {
    const [one, other] = [openProcess(), openProcess()];
    expect(await one.enter(A, COUNT)).toMatchObject({ caller: { waitMs: 0, remaining: 1 }, account: { remaining: 2 } });
    expect(await other.enter(A, COUNT)).toMatchObject({ caller: { waitMs: 0, remaining: 0 } });
    const { account, caller } = await one.enter(A, COUNT);
    expect([account.waitMs, caller.waitMs > 990_000]).toEqual([0, true]);
  });

  it('of an account are counted for all its callers, and a refused one is not', async () => {
    const limits = openProcess();
    for (let index = 0; index < 5; index += 1) await limits.enter(A, COUNT);
    expect((await limits.enter(COLLEAGUE, COUNT)).account).toEqual({ waitMs: 0, remaining: 0 });
    const refused = await limits.enter(COLLEAGUE, COUNT);
    expect([refused.caller.waitMs, refused.account.waitMs > 0]).toEqual([0, true]);
  });

  it('that come at the same time are counted each: the first pass, and the others learn how long to wait', async () => {
    const limits = openProcess();
    const [first, second, third, colleague] = await Promise.all([
      ...Array.from({ length: 3 }, () => limits.enter(A, COUNT)),
      limits.enter(COLLEAGUE, COUNT),
    ]);
    expect(first).toMatchObject({ caller: { waitMs: 0, remaining: 1 }, account: { waitMs: 0 } });
    expect(second).toMatchObject({ caller: { waitMs: 0, remaining: 0 }, account: { waitMs: 0 } });
    expect(third?.caller.waitMs).toBeGreaterThan(990_000);
    // The refused one was counted nowhere.
    expect(colleague).toMatchObject({ caller: { waitMs: 0 }, account: { waitMs: 0, remaining: 0 } });
  });

  it('of a caller of the same name in another account are not counted', async () => {
    const limits = openProcess();
    for (let index = 0; index < 5; index += 1) await limits.enter(A, COUNT);
    expect(await limits.enter(NAMESAKE, COUNT)).toMatchObject({ caller: { remaining: 1 }, account: { remaining: 2 } });
  });
});

describe('statements at once', () => {
  const lease = async (process: SharedLimits, party = A) => {
    const { lease, full } = await process.enter(party, LEASE);
    return lease ?? full;
  };

  it('of a caller, and of all callers of an account, are bounded over all processes', async () => {
    const [one, other] = [openProcess(), openProcess()];
    const held = [await lease(one), await lease(other)];
    expect(await lease(one)).toBe('caller');
    expect(await lease(other, COLLEAGUE)).toMatchObject({ party: COLLEAGUE });
    expect(await lease(one, COLLEAGUE)).toBe('account');
    // Of both: nobody of the account would get one.
    expect(await lease(one)).toBe('account');
    expect(await lease(one, NAMESAKE)).toMatchObject({ party: NAMESAKE });
    const [first] = held;
    if (typeof first !== 'object') throw new Error('no lease');
    one.release(first);
    expect(await lease(other)).toMatchObject({ party: A });
  });

  it('are not leased to a request that is refused', async () => {
    const limits = openProcess();
    for (let index = 0; index < 2; index += 1) await limits.enter(A, COUNT);
    expect(await limits.enter(A, { counts: true, leases: true })).toMatchObject({ lease: undefined, full: undefined });
    expect(await redis.keys(`${prefix}*statements`)).toEqual([]);
  });

  it('of a process that was killed are free again when their leases end', async () => {
    const [killed, other] = [openProcess(), openProcess()];
    await lease(killed);
    await lease(killed);
    expect(await lease(other)).toBe('caller');
    // A process that was killed renews nothing. Its leases get the age that they would have then.
    connections[0]?.disconnect();
    for (const key of await redis.keys(`${prefix}*statements`)) {
      for (const id of await redis.zrange(key, 0, '-1')) await redis.zincrby(key, -LEASE_MS, id);
    }
    expect(await lease(other)).toMatchObject({ party: A });
  });

  it('of a process that lives are renewed before their leases end', async () => {
    const limits = openProcess();
    await lease(limits);
    const [key = ''] = await redis.keys(`${prefix}*account*statements`);
    const end = async () => Number((await redis.zrange(key, 0, '-1', 'WITHSCORES'))[1]);
    const first = await end();
    while ((await end()) === first) await delay(50);
    expect((await end()) > first).toBe(true);
  });

  it('leave nothing in Redis for longer than a lease', async () => {
    const limits = openProcess();
    await lease(limits);
    const keys = await redis.keys(`${prefix}*statements`);
    expect(keys).toHaveLength(2);
    for (const key of keys) {
      expect(await redis.pttl(key)).toBeLessThanOrEqual(LEASE_MS);
      expect(await redis.pttl(key)).toBeGreaterThan(0);
    }
  });
});

it('asks Redis once for a request and its statement', async () => {
  const limits = openProcess();
  await limits.enter(A, { counts: true, leases: true });
  const [connection] = connections;
  if (!connection) throw new Error('no connection');
  const sent = jest.spyOn(connection, 'sendCommand');
  await limits.enter(COLLEAGUE, { counts: true, leases: true });
  expect(sent.mock.calls.map(([command]) => command.name)).toEqual(['evalsha']);
});
