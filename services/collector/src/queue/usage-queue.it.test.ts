/** A Redis that evicts, or is of the wrong kind, takes no event; and a write when Redis becomes silent between two commands, which no request can show: it reads the key first. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { findFreePort, redisUrlOf, type Servers, startServers } from '@meterline/local-stack';
import { checkRedis, StartError } from '@meterline/service';
import { parseToken } from '@meterline/service/access';
import { Redis } from 'ioredis';
import { runCommand } from '../../../../test/cli/run-command.js';
import { event, startCollectorFixture } from '../../../../test/harness/collector.js';
import { whileFrozen } from '../../../../test/harness/programs.js';
import { RedisProcess } from '../../../../test/harness/redis-servers.js';
import { testFolder } from '../../../../test/harness/test-folder.js';
import { until } from '../../../../test/harness/waiting.js';
import { UsageQueue } from './usage-queue.js';

const WRITE_MS = 300;

let servers: Servers;
let queue: UsageQueue;
beforeAll(async () => {
  servers = await startServers({ shards: 0 });
  queue = await UsageQueue.open({
    redisUrl: `${servers.redis.url}?durability=assumed`,
    prefix: 'bull',
    writeMs: WRITE_MS,
    telemetry: undefined,
  });
});
afterAll(async () => {
  queue.disconnect();
  await servers.stop();
});

it('the usage queue ends a write that Redis does not answer, keeps nothing of it, and writes again afterwards', async () => {
  await whileFrozen(servers.redis.pid, async () => {
    await expect(queue.add([{ large: 'x'.repeat(1_000_000) }])).rejects.toThrow(
      `did not respond within ${WRITE_MS} ms`,
    );
    // The connection, with what was not sent on it, is gone.
    await expect(queue.add([{}])).rejects.toThrow();
  });
  // Without a connection a write fails within the same turn.
  await until('it writes again', () =>
    queue.add([{}]).then(
      () => true,
      () => false,
    ),
  );
  const redis = new Redis(servers.redis.url);
  expect(await redis.llen('bull:usage-events:wait')).toBeGreaterThan(0);
  redis.disconnect();
});

const unused = async () => {
  throw new Error('the connection is used');
};
const EVICTS = /may evict events and API keys, with maxmemory-policy allkeys-lru: set maxmemory-policy noeviction/;

it('a collector is not ready and accepts nothing while Redis may evict events, and such a Redis is refused at start', async () => {
  const { url } = servers.redis;
  const fixture = await startCollectorFixture({}, url);
  try {
    const { key } = await fixture.account();
    const send = async () => (await fixture.send(key, JSON.stringify([event()]))).status;
    const readiness = async () => (await fetch(`${fixture.service.url}/readyz`)).text();
    expect(await send()).toBe(202);
    await fixture.takeJobs();

    await fixture.redis.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await until('the collector is not ready', async () => EVICTS.test(await readiness()));
    expect([await send(), await fixture.takeJobs()]).toEqual([503, []]);
    await until('one with durability=assumed accepts none either', () =>
      queue.require().then(
        () => false,
        ({ message }: Error) => EVICTS.test(message),
      ),
    );
    await expect(checkRedis(`${url}?durability=assumed`, unused)).rejects.toThrow(EVICTS);
    const creation = ['keys', 'create', '--account', 'acme', '--role', 'admin', '--redis-url', url];
    expect(await runCommand(creation)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringMatching(EVICTS) });
    const keyId = parseToken(key)?.keyId ?? '';
    for (const repair of [
      ['queue', 'status'],
      ['keys', 'list'],
      ['keys', 'revoke', keyId],
    ]) {
      const run = await runCommand([...repair, '--redis-url', url]);
      expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/./), stderr: expect.stringMatching(EVICTS) });
    }

    await fixture.redis.config('SET', 'maxmemory-policy', 'noeviction');
    const other = await fixture.account();
    const sendAgain = () => fixture.send(other.key, JSON.stringify([event()]));
    await until('events are accepted again', async () => (await sendAgain()).status === 202);
    expect(await readiness()).toBe('{"status":"ready"}');

    const { password } = new URL(redisUrlOf(url, 'collector'));
    await fixture.redis.call('ACL', 'SETUSER', 'collector', 'resetpass', '>other');
    await fixture.redis.call('CLIENT', 'KILL', 'USER', 'collector');
    const WRONG = /Redis returned an error: WRONGPASS/;
    await until('the reason is that its password is wrong', async () => WRONG.test(await readiness()));
    // Also between two attempts to connect.
    for (let times = 0; times < 500; times += 1) expect(await readiness()).toMatch(WRONG);
    await fixture.redis.call('ACL', 'SETUSER', 'collector', 'resetpass', `>${password}`);
    await until('it is ready again', async () => (await readiness()) === '{"status":"ready"}');
  } finally {
    await fixture.close();
  }
});

const folder = testFolder();

it.each([
  ['a cluster', ['--cluster-enabled', 'yes'], /is a cluster, which Meterline cannot use: use one server/],
  [
    'a server without scripts',
    ['--rename-command', 'EVAL', ''],
    /cannot run INFO and the scripts of .* \(ERR unknown command 'eval'\): use Redis or Valkey/,
  ],
])('a Redis that is %s is refused at start', async (_kind, args, problem) => {
  const server = new RedisProcess(await findFreePort(), folder());
  await server.start(...args);
  try {
    const start = checkRedis(`redis://127.0.0.1:${server.port}`, unused);
    await expect(start).rejects.toThrow(problem);
    await expect(start).rejects.toThrow(StartError);
  } finally {
    await server.kill();
  }
});

it('requests at the same time share one check of Redis', async () => {
  const options = { redisUrl: servers.redis.url, prefix: 'bull', writeMs: 5_000, telemetry: undefined };
  const checked = await UsageQueue.open(options);
  const redis = new Redis(servers.redis.url);
  const checks = async () => Number(/^cmdstat_config\|get:calls=(\d+)/m.exec(await redis.info('commandstats'))?.[1]);
  try {
    // A new connection knows nothing of its server.
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    const before = await checks();
    await until('the collector is connected again', () =>
      Promise.all(Array.from({ length: 20 }, () => checked.require())).then(
        () => true,
        () => false,
      ),
    );
    expect((await checks()) - before).toBe(1);
  } finally {
    checked.disconnect();
    redis.disconnect();
  }
});
