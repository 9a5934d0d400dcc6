/** What becomes of a write when Redis is silent between two commands, which no request can show: it asks for the key first. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import type { RedisClient } from '@meterline/access';
import { type RunningRedis, startRedis } from '@meterline/local-stack';
import { createQueueConnection, EventQueue } from './event-queue.js';

const WRITE_MS = 300;
const jobOf = (event: object) => ({ parts: [Buffer.from(JSON.stringify(event))], count: 1 });

let dataDir: string;
let server: RunningRedis;
let redis: RedisClient;
let queue: EventQueue;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-event-queue-'));
  server = await startRedis({ dataDir });
  redis = createQueueConnection(server.url);
  redis.on('error', () => undefined);
  await redis.connect();
  queue = new EventQueue({ redis, prefix: 'bull', replicas: 0, writeMs: WRITE_MS, telemetry: undefined });
  await queue.open();
});
afterAll(async () => {
  redis.disconnect();
  await server.stop();
  await rm(dataDir, { recursive: true });
});

it('ends a write that Redis does not answer, keeps nothing of it, and writes again afterwards', async () => {
  process.kill(server.pid, 'SIGSTOP');
  try {
    await expect(queue.add(jobOf({ large: 'x'.repeat(1_000_000) }))).rejects.toThrow(
      `did not answer within ${WRITE_MS} ms`,
    );
    // The connection, with what was not sent on it, is gone.
    await expect(queue.add(jobOf({}))).rejects.toThrow();
  } finally {
    process.kill(server.pid, 'SIGCONT');
  }
  for (let isWritten = false; !isWritten; ) {
    // Without a connection a write fails within the same turn.
    await delay(20);
    isWritten = await queue.add(jobOf({})).then(
      () => true,
      () => false,
    );
  }
  expect(await redis.llen('bull:usage-events:wait')).toBeGreaterThan(0);
});
