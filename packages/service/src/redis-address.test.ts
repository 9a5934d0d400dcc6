import { expect, it } from '@jest/globals';
import { isFull } from './access/redis-status.js';
import { createLog } from './log.js';
import { parseRedisUrl, redisClientOptions, redisTarget, redisUrlProblem } from './redis-address.js';
import { warnOfReplicas } from './servers.js';

it.each([
  'redis://127.0.0.1:6379',
  'redis://redis',
  'redis://127.0.0.1:6379/',
  'redis://127.0.0.1:6379/15',
  'rediss://ann:secret@redis.example.com:6380/1',
  'redis://:secret@[::1]:6379',
  'redis://h?family=0',
  'redis://h/3?family=6&replicas=1&durability=assumed',
  'rediss+sentinel://ann:secret@s1,s2:26380/main/2?sentinelUsername=bob&sentinelPassword=x&servername=redis.example.com',
])('an address of Redis may be %s', (url) => {
  expect(redisUrlProblem(url)).toBeUndefined();
});

it.each([
  '',
  'localhost',
  'localhost:6379',
  'redis:///1',
  'http://127.0.0.1:6379',
  '/run/redis.sock',
  'redis+x://h',
  'redis+cluster://h',
])('an address of Redis must not be %j', (url) => {
  expect(redisUrlProblem(url)).toBe('must be a URL such as redis://127.0.0.1:6379');
});

it.each([
  ['redis://h/abc', 'with nothing in its path but the number of a database, such as /1'],
  ['redis://h/1/', 'with nothing in its path but the number of a database, such as /1'],
  ['redis://h/%31', 'with nothing in its path but the number of a database, such as /1'],
  ['redis://h?keyPrefix=x', 'has an unknown option; the options are family'],
  ['redis://h?family=5', 'must have as its option family 0, 4 or 6'],
  ['redis://h?replicas=', 'must have the option replicas once, and with a value'],
  ['redis://h?replicas=1&replicas=2', 'must have the option replicas once, and with a value'],
  ['redis://h?servername=x', 'has the option servername, which needs rediss://'],
  ['redis://h?sentinelPassword=x', 'does not begin with redis+sentinel://'],
  ['redis://h#x', 'contains a #; write a # in a password as %23'],
  ['redis://ann:100%@h', 'has an invalid percent encoding'],
  ['redis://h:99999', 'a host or port is not valid'],
  ['redis://h1,h2', 'begin it with redis+sentinel://'],
  ['redis+sentinel://s1,s2', 'must name the master after the Sentinels'],
  ['redis://h?replicas=10', 'must have as its option replicas a whole number from 0 to 9'],
  ['redis://h?durability=sure', 'must have as its option durability the word assumed'],
])('an address of Redis must not be %s', (url, problem) => {
  expect(redisUrlProblem(url)).toContain(problem);
  expect(() => parseRedisUrl(url)).toThrow(problem);
});

it('messages show a Redis address without its password', () => {
  expect(redisTarget('rediss+sentinel://ann:secret@s1,[::1]:5/main/2')).toBe('s1:26379,[::1]:5/main');
});

it('options in the address override the options of the process', () => {
  const address = parseRedisUrl('rediss://ann:s%40cret@h/2?family=6&servername=redis');
  expect(redisClientOptions(address, { connectTimeout: 2_000, maxRetriesPerRequest: 0 })).toMatchObject({
    host: 'h',
    port: 6379,
    db: 2,
    username: 'ann',
    password: 's@cret',
    family: 6,
    connectTimeout: 2_000,
    maxRetriesPerRequest: 0,
    tls: { servername: 'redis' },
  });
});

it('ioredis gets passwords and TLS for the Sentinels and for the server', () => {
  const address = parseRedisUrl('rediss+sentinel://:a@s1,s2:5/main?sentinelPassword=b');
  expect(redisClientOptions(address, {})).toMatchObject({
    sentinels: [
      { host: 's1', port: 26_379 },
      { host: 's2', port: 5 },
    ],
    name: 'main',
    password: 'a',
    sentinelPassword: 'b',
    tls: {},
    enableTLSForSentinelMode: true,
  });
});

it.each(['redis://r', 'redis+sentinel://s/main'])(
  'ioredis leaves a connection for %s whose other end is silent, or a replica now',
  (url) => {
    const { socketTimeout, reconnectOnError } = redisClientOptions(parseRedisUrl(url), {});
    expect(socketTimeout).toBe(15_000);
    const isLeft = ["READONLY You can't write", 'OOM command not allowed'].map((text) =>
      reconnectOnError?.(new Error(text)),
    );
    expect(isLeft).toEqual([true, false]);
  },
);

const memory = (used: number, limit: number, notCounted = 0) =>
  `# Memory\r\nused_memory:${used}\r\nused_memory_rss:9999999\r\nmaxmemory:${limit}\r\nmaxmemory_policy:noeviction\r\nmem_not_counted_for_evict:${notCounted}\r\n`;

it.each([
  ['without a limit', false, memory(5_000, 0)],
  ['below its limit', false, memory(4_999, 5_000)],
  ['above its limit', true, memory(5_001, 5_000)],
  ['above it with what does not count', false, memory(5_100, 5_000, 200)],
  ['that says nothing', false, ''],
])('a Redis %s is full: %s', (_, expected, info) => {
  expect(isFull(info)).toBe(expected);
});

it.each([
  ['redis://ann:s3cret@redis:6379', 2, [{ event: 'replicas_not_awaited', replicas: 2 }]],
  ['redis://ann:s3cret@redis:6379?replicas=1', 2, []],
  ['redis://ann:s3cret@redis:6379', 0, []],
])('a service of %s whose server has %d replicas warns of them: %j', async (url, replicas, warnings) => {
  const lines: string[] = [];
  const log = createLog('meterline-test', 'info', { write: (line) => void lines.push(line) });
  const info = async (section: string) => `# ${section}\r\nrole:master\r\nconnected_slaves:${replicas}\r\n`;
  await warnOfReplicas({ info }, url, log);
  expect(lines.map((line) => JSON.parse(line))).toMatchObject(warnings);
  expect(lines.join()).not.toContain('s3cret');
});
