import { afterEach, beforeEach, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { createRedis } from './redis-connection.js';

let redis: Redis;
let key: string;
beforeEach(async () => {
  key = uniquePrefix();
  const created = createRedis(testRedisUrl());
  if (!(created instanceof Redis)) throw new Error('not one server');
  redis = created;
  redis.on('error', () => undefined);
  await redis.connect();
});
afterEach(async () => {
  await redis.del(key);
  redis.disconnect();
});

it('commands of one turn are one write to the socket, and each has its own reply or error', async () => {
  const { stream } = redis;
  const writes: number[] = [];
  const writev = stream._writev?.bind(stream);
  stream._writev = (chunks, callback) => {
    writes.push(chunks.length);
    writev?.(chunks, callback);
  };
  const outcomes = await Promise.allSettled([redis.set(key, 'text'), redis.hgetall(key), redis.get(key)]);
  expect(outcomes).toMatchObject([
    { value: 'OK' },
    { reason: { message: expect.stringContaining('WRONGTYPE') } },
    { value: 'text' },
  ]);
  expect(writes).toEqual([3]);
});

it('a connection that ends within the turn fails the commands of that turn alone', async () => {
  const commands = Promise.allSettled([redis.get(key), redis.get(key)]);
  redis.stream.destroy();
  expect((await commands).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  await new Promise((resolve) => redis.once('ready', resolve));
  expect(await redis.set(key, 'again')).toBe('OK');
});
