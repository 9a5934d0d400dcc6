/** The addresses that are left to ioredis mean there what they mean everywhere else in Meterline; and the end of a transport. */
import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { parseRedisUrl, redisClientOptions, redisUrlFault } from '@meterline/catalog/events';
import { Redis } from 'ioredis';
import { isPlain, openQueueTransport } from './queue-transport.js';

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

describe('a transport that is closed', () => {
  const sockets: Socket[] = [];
  let server: Server;
  let url: string;
  beforeEach(async () => {
    server = createServer((socket) => sockets.push(socket));
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const address = server.address();
    url = typeof address === 'object' ? `redis://127.0.0.1:${address?.port}` : '';
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await once(server.close(), 'close');
  });

  it.each([1, 2])('connects to none of %d queues for what is sent later', async (shards) => {
    const transport = await openQueueTransport(url, { shards });
    transport.close();
    await expect(transport.send(['{}'], '')).rejects.toThrow('closed');
    expect(sockets).toHaveLength(0);
  });
});
