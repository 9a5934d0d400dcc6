/**
 * redis/users.conf: producers can add jobs, and producers and collectors can do nothing else. The other users can do their work: services in
 * start.it.test.ts of local-stack, the operator in redis.long.test.ts, and all of them in every test that starts services and commands.
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { type RedisUser, type Servers, startServers } from '@meterline/local-stack';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { usageEvents } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { stored } from '../harness/queue.js';
import { until } from '../harness/waiting.js';

const SECRET = 'the name of a customer';

let servers: Servers;
let product: Product;
let queue: Queue;
let producer: Redis;

const urlOf = (user: RedisUser) => servers.redis.urls[user];

beforeAll(async () => {
  servers = await startServers({ shards: 0 });
  product = await startProduct({ redisUrl: servers.redis.url, prefix: 'bull' });
  queue = new Queue(QUEUE_NAME, { connection: { url: urlOf('producer') } });
  producer = new Redis(urlOf('producer'));
});
afterAll(async () => {
  await queue.close();
  producer.disconnect();
  await product.close();
  await servers.stop();
});

it('a producer adds jobs of every kind, and a worker stores them', async () => {
  const [first = {}, second = {}, third = {}, fourth = {}] = usageEvents(1, 4);
  await queue.add('usage', { events: [first] });
  await queue.addBulk([{ name: 'usage', data: { events: [second] } }]);
  await queue.add('usage', { events: [third] }, { priority: 2, removeOnComplete: true });
  await queue.add('usage', { events: [fourth] }, { delay: 1, jobId: 'mine' });
  const worker = await product.startIngest();
  await until('all are stored', async () => (await stored(product.warehouse)).events === 4);
  expect(worker.log()).not.toMatch(/NOPERM|can't run this command|can't access at least one of the keys/);
  expect(await worker.stop()).toBe(0);
});

describe.each<RedisUser>(['producer', 'collector'])('a %s', (user) => {
  let own: Redis;
  let ownQueue: Queue;
  let jobId: string;
  beforeAll(async () => {
    own = new Redis(urlOf(user));
    ownQueue = new Queue(QUEUE_NAME, { connection: { url: urlOf(user) } });
    jobId = String((await ownQueue.add('usage', { events: [SECRET] })).id);
  });
  afterAll(async () => {
    await ownQueue.close();
    own.disconnect();
  });

  it.each<[string, string]>([
    ['write an account', 'HSET meterline:accounts globex x'],
    ['write an API key', 'HSET meterline:api-key:x role operator'],
    ['delete an API key', 'DEL meterline:api-key:x'],
    ['list API keys', 'ZRANGE meterline:api-keys 0 -1'],
    ['list those of an account', 'HGETALL meterline:api-keys-of:acme'],
    ['lift the limits of the API', 'HSET meterline:limits:account:acme a b'],
    ['read a job', 'HGETALL bull:usage-events:JOB'],
    ['read the data of a job', 'HGET bull:usage-events:JOB data'],
    ['write to another queue', 'LPUSH bull:meterline-maintenance:wait 1'],
  ])(`a ${user} cannot %s, not in a script either`, async (_, command) => {
    const words = command.replace('JOB', jobId).split(' ');
    const [name = '', ...args] = words;
    await expect(own.call(name, ...args)).rejects.toThrow(/NOPERM/);
    const script = own.call('EVAL', 'return redis.call(unpack(ARGV))', '0', ...words);
    await expect(script).rejects.toThrow(/NOPERM|The user executing the script can't/);
  });

  it(`a ${user} cannot drain, clean or read a queue with BullMQ`, async () => {
    const calls = [
      () => ownQueue.drain(),
      () => ownQueue.obliterate({ force: true }),
      () => ownQueue.clean(0, 10, 'wait'),
      () => ownQueue.remove(jobId),
      () => ownQueue.getJob(jobId),
      () => ownQueue.getJobs(),
    ];
    for (const call of calls) await expect(call()).rejects.toThrow(/NOPERM|The user executing the script can't/);
  });

  it(`a ${user} has left the job as it was`, async () => {
    expect(await product.redis.hget(`bull:usage-events:${jobId}`, 'data')).toContain(SECRET);
    expect(await product.redis.hexists('meterline:accounts', 'globex')).toBe(0);
  });
});

it.each([
  ['read an API key', 'HGETALL meterline:api-key:x'],
  ['note the use of one', 'HSET meterline:api-key-uses x 2026'],
  ["count a collector's requests", 'HSET meterline:collector:limits:account:acme a b'],
  ['read the configuration', 'CONFIG GET appendonly'],
])('a producer cannot %s', async (_, command) => {
  const [name = '', ...args] = command.split(' ');
  await expect(producer.call(name, ...args)).rejects.toThrow(/NOPERM/);
});

/** What BullMQ asks of the server, and adds a job with; whose keys they are is in the rules. */
const OF_PRODUCER =
  'info eval evalsha exists hget hmget hset hmset incr llen lpush rpush xadd zadd zrange zrevrangebyscore zscore ' +
  'wait cluster|info cluster|keyslot cluster|slots';
/** It also looks up API keys and counts requests. */
const OF_COLLECTOR = `${OF_PRODUCER} config|get get set hgetall time incrby pttl expire multi exec`;

it.each([
  ['producer', OF_PRODUCER],
  ['collector', OF_COLLECTOR],
])('a %s is allowed no command of Redis but its own and those of its connection', async (user, own) => {
  const list = async (...args: readonly string[]) =>
    z.array(z.string()).parse(await product.redis.call(...(args as [string])));
  // What is an administrator's among those of connections it may not do either.
  const admin = new Set(await list('ACL', 'CAT', 'admin'));
  const ofConnections = new Set((await list('ACL', 'CAT', 'connection')).filter((name) => !admin.has(name)));
  const commands = (await list('COMMAND', 'LIST')).filter((name) => !ofConnections.has(name));
  const allowed = new Set<string>();
  for (const command of commands) {
    // So many arguments that every command has its number of them at least once.
    for (let count = 0; count < 9; count += 1) {
      const args = Array<string>(count).fill('bull:usage-events:wait');
      const outcome = await product.redis.call('ACL', 'DRYRUN', user, ...command.split('|'), ...args).catch(String);
      if (outcome === 'OK') allowed.add(command);
    }
  }
  expect([...allowed].filter((command) => !own.split(' ').includes(command))).toEqual([]);
  expect(allowed).toContain('lpush');
});
