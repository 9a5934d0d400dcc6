/** What several processes count together, each here with a connection of its own. */
import { IncomingMessage, ServerResponse } from 'node:http';
import { Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from '@jest/globals';
import type { RedisClient } from '@meterline/service/access';
import { testRedisUrl, uniquePrefix } from '../../../../test/harness/stack.js';
import { createRedis } from '../hosting.js';
import { type Principal, RateLimiter } from './rate-limits.js';

const ANN = { account: 'a', caller: 'ann' };
const ALEX = { account: 'a', caller: 'alex' };
const NAMESAKE = { account: 'b', caller: 'ann' };
/** In windows that no test outlasts. */
const LIMITS = { accountRate: { requests: 3, seconds: 3_000 }, callerRate: { requests: 2, seconds: 1_000 } };

/** The test's own. */
const redis = createRedis(testRedisUrl());
let connections: RedisClient[];
let prefix: string;
beforeAll(() => redis.connect());
afterAll(() => redis.disconnect());
beforeEach(() => {
  connections = [];
  prefix = uniquePrefix();
});
afterEach(async () => {
  await redis.del('none', ...(await redis.keys(`${prefix}*`)));
  for (const connection of connections) connection.disconnect();
});

async function openProcess(): Promise<RateLimiter> {
  const connection = createRedis(testRedisUrl());
  await connection.connect();
  connections.push(connection);
  return new RateLimiter({ redis: connection, prefix, limits: LIMITS });
}

/** @returns what the response says is left, and whether the request was refused */
async function count(limiter: RateLimiter, principal: Principal) {
  const response = new ServerResponse(new IncomingMessage(new Socket()));
  const refused = await limiter.count(principal, response).then(
    () => undefined,
    ({ status, message, headers }) => [status, message, Number(headers['Retry-After'])] as const,
  );
  const left = String(response.getHeader('RateLimit')).replace(/;t=\d+/g, '');
  return { left, refused, policy: response.getHeader('RateLimit-Policy') };
}

it('requests of a caller are counted together by all processes, and the response says what is left', async () => {
  const [one, other] = [await openProcess(), await openProcess()];
  const first = await count(one, ANN);
  expect(first).toEqual({
    left: '"account";r=2, "caller";r=1',
    refused: undefined,
    policy: '"account";q=3;w=3000, "caller";q=2;w=1000',
  });
  expect(await count(other, ANN)).toMatchObject({ left: '"account";r=1, "caller";r=0', refused: undefined });
  for (const limiter of [one, other, one]) {
    const { left, refused } = await count(limiter, ANN);
    expect([left, refused?.[0], refused?.[1]]).toEqual([
      '"caller";r=0',
      429,
      'You may send 2 requests in 1000 seconds; wait as long as Retry-After says.',
    ]);
    expect(refused?.[2]).toBeGreaterThan(990);
  }
  // What a caller is refused does not count for its account.
  expect(await count(other, ALEX)).toMatchObject({ left: '"account";r=0, "caller";r=1', refused: undefined });
  expect((await count(one, ALEX)).refused?.[1]).toMatch(/^All callers of this account together may send 3 requests/);
});

it('requests of a caller of the same name in another account are not counted', async () => {
  const limiter = await openProcess();
  for (let times = 0; times < 5; times += 1) await count(limiter, ANN);
  expect(await count(limiter, NAMESAKE)).toMatchObject({ left: '"account";r=2, "caller";r=1', refused: undefined });
});

it('requests that come at the same time are counted each', async () => {
  const limiter = await openProcess();
  const counted = await Promise.all(Array.from({ length: 5 }, () => count(limiter, ANN)));
  expect(counted.map(({ refused }) => refused?.[0])).toEqual([undefined, undefined, 429, 429, 429]);
});

it('requests are counted by each process alone while Redis is away', async () => {
  const limiter = await openProcess();
  for (const connection of connections) connection.disconnect();
  const counted = [];
  for (let times = 0; times < 3; times += 1) counted.push((await count(limiter, ANN)).refused?.[0]);
  expect(counted).toEqual([undefined, undefined, 429]);
});
