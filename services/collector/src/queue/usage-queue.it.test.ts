/** A write when Redis becomes silent between two commands. No request can show this: it reads the key first. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type Servers, startServers } from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { whileFrozen } from '../../../../test/harness/programs.js';
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
    await expect(queue.add([{ large: 'x'.repeat(1_000_000) }])).rejects.toThrow(`did not answer within ${WRITE_MS} ms`);
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
