/** What becomes of a write when Redis is silent between two commands, which no request can show: it asks for the key first. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type RunningRedis, startRedis } from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { UsageQueue } from './usage-queue.js';

const WRITE_MS = 300;

let dataDir: string;
let server: RunningRedis;
let queue: UsageQueue;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-usage-queue-'));
  server = await startRedis({ dataDir });
  queue = await UsageQueue.open({
    redisUrl: `${server.url}?durability=assumed`,
    prefix: 'bull',
    writeMs: WRITE_MS,
    telemetry: undefined,
  });
});
afterAll(async () => {
  queue.disconnect();
  await server.stop();
  await rm(dataDir, { recursive: true });
});

it('the usage queue ends a write that Redis does not answer, keeps nothing of it, and writes again afterwards', async () => {
  process.kill(server.pid, 'SIGSTOP');
  try {
    await expect(queue.add([{ large: 'x'.repeat(1_000_000) }])).rejects.toThrow(`did not answer within ${WRITE_MS} ms`);
    // The connection, with what was not sent on it, is gone.
    await expect(queue.add([{}])).rejects.toThrow();
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
  for (let isWritten = false; !isWritten; ) {
    // Without a connection a write fails within the same turn.
    await delay(20);
    isWritten = await queue.add([{}]).then(
      () => true,
      () => false,
    );
  }
  const redis = new Redis(server.url);
  expect(await redis.llen('bull:usage-events:wait')).toBeGreaterThan(0);
  redis.disconnect();
});
