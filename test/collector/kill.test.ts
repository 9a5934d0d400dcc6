/** The collector and Redis are killed while clients send: every event that was answered with 202 counts, and counts once. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { findFreePort, type RunningRedis, startRedis } from '@meterline/local-stack';
import { drained, openPipeline, type Pipeline, stored, usageEvents } from '../e2e/pipeline.js';
import { killServices, startCollector, startIngest } from '../services.js';

const CLIENTS = 8;
const KILLS = process.env.METERLINE_TEST_SHORT ? 2 : 12;
const SIZES = [1, 1, 1, 20, 300];
/** Between two kills. */
const BUSY_MS = 700;

let dataDir: string;
let server: RunningRedis;
let pipeline: Pipeline;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-collector-kill-'));
  server = await startRedis({ dataDir });
  pipeline = await openPipeline({ redisUrl: server.url });
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
  await server.kill();
  await rm(dataDir, { recursive: true });
});

it('loses and doubles nothing', async () => {
  const { redis, warehouse, queue } = pipeline;
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  const { key } = await keys.create({ account: 'acme', role: 'emitter', clientId: 'kill' }, new Date());
  const port = String(await findFreePort());
  const env = { ...pipeline.env, PORT: port, COLLECTOR_WRITE_MS: '1000', COLLECTOR_ACCOUNT_BURST: '100000' };
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  let accepted = 0;
  let failures = 0;
  let next = 0;
  let isOver = false;

  /** Sends a request until it is answered with 202, and never again after that. */
  const client = async (number: number) => {
    for (let round = number; !isOver; round += 1) {
      const events = usageEvents(next, SIZES[round % SIZES.length] ?? 1);
      next += events.length;
      const body = JSON.stringify(events);
      for (;;) {
        const signal = AbortSignal.timeout(10_000);
        const url = `http://127.0.0.1:${port}/v0/accounts/acme/events`;
        const answer = await fetch(url, { method: 'POST', headers, body, signal }).catch(() => undefined);
        await answer?.arrayBuffer().catch(() => undefined);
        if (answer?.status === 202) break;
        if (answer && answer.status < 429) throw new Error(`answered with ${answer.status}`);
        failures += 1;
        await delay(50);
      }
      accepted += events.length;
    }
  };

  let collector = await startCollector(env);
  const clients = Promise.all(Array.from({ length: CLIENTS }, (_, number) => client(number)));
  for (let kill = 0; kill < KILLS; kill += 1) {
    await delay(BUSY_MS);
    if (kill % 2 === 0) {
      await collector.kill();
      collector = await startCollector(env);
    } else {
      await server.kill();
      server = await startRedis({ dataDir, port: server.port });
    }
  }
  await delay(BUSY_MS);
  isOver = true;
  await clients;
  expect(await collector.stop()).toBe(0);

  expect(failures).toBeGreaterThan(0);
  expect(accepted).toBe(next);
  await startIngest(pipeline.env);
  await drained(queue);
  expect(await stored(warehouse)).toEqual({ events: accepted, usage: accepted });
});
