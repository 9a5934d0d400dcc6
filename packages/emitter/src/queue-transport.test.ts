/** The addresses that are left to ioredis mean there what they mean everywhere else in Meterline. */

import { describe, expect, it } from '@jest/globals';
import { parseRedisUrl, redisClientOptions, redisUrlFault } from '@meterline/catalog/events';
import { Redis } from 'ioredis';
import { isPlain } from './queue-transport.js';

const PLAIN = [
  'redis://127.0.0.1:6379',
  'redis://redis',
  'redis://redis.example.com:6380/',
  'redis://redis/15',
  'redis://meter:secret@redis:6379/2',
  'redis://:secret@redis',
  'redis://user:a:b@redis',
  'redis://meter:a!b$c&d=e+f;g@redis:6379',
  'rediss://meter:secret@redis.example.com:6380/1',
  'redis://[::1]:6379/3',
];

const OTHERS = [
  'redis://redis?db=1',
  'redis://redis/0?replicas=1',
  'redis://user@redis',
  'redis://user:a%23b@redis',
  'redis://user:a@b@redis',
  'redis+sentinel://127.0.0.1:26379/mymaster',
  'redis+cluster://127.0.0.1:6379',
  'REDIS://127.0.0.1',
  'redis://a,b',
  'redis://',
  'redis://host:99999',
  'redis://999.1.1.1',
  'redis://ho st',
  'redis://redis/x',
  'redis://redis/123456',
  'redis://redis/1/2',
  'redis://redis#1',
];

describe('an address of one server', () => {
  it.each(PLAIN)('is read by ioredis as by us: %s', (url) => {
    expect([isPlain(url), redisUrlFault(url)]).toEqual([true, undefined]);
    const { options } = redisClientOptions(parseRedisUrl(url), { lazyConnect: true });
    const ours = new Redis({ ...options, lazyConnect: true });
    const theirs = new Redis(url, { lazyConnect: true });
    expect(essence(theirs)).toEqual(essence(ours));
  });

  it.each(OTHERS)('is left to the rules of an address when it has more, or is none: %s', (url) => {
    expect(isPlain(url)).toBe(false);
  });
});

/** Nothing is nothing, however it is written. */
function essence({ options: { db, host, password, port, tls, username } }: Redis) {
  return { db, host, port, password: password || undefined, username: username || undefined, hasTls: Boolean(tls) };
}
