/** A worker and two query processes that keep answers: each event is in the next answer after its acknowledgement, whatever Redis does. */
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, jest } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import type { UsageEventInput } from '@meterline/catalog';
import { type RunningRedis, startRedis } from '@meterline/local-stack';
import { sealNext } from '@meterline/warehouse';
import { z } from 'zod';
import { adminUrl, scrape } from '../observability/scrape.js';
import { type HttpProcess, killServices, NO_LIMITS, startIngest, startQuery } from '../services.js';
import { drained, openPipeline, type Pipeline, usageEvent } from './pipeline.js';

jest.setTimeout(300_000);

const HOUR = 3_600;
/** Of usageEvent(0), which is sealed, and the day after it, which is not. */
const DAYS = ['2026-01-01', '2026-01-02'] as const;
const SEALED_UNTIL = Date.UTC(2026, 0, 2);

let dataDir: string;
let redis: RunningRedis;
let pipeline: Pipeline;
let queries: readonly HttpProcess[];
let key: string;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-kept-'));
  redis = await startRedis({ dataDir });
  pipeline = await openPipeline({ redisUrl: redis.url });
  await startIngest({ ...pipeline.env, INGEST_FLUSH_MS: '10' });
  const env = { ...pipeline.env, ...NO_LIMITS, CURSOR_SECRET: 'a secret of these tests, 32 characters or more' };
  queries = await Promise.all([0, 1].map(() => startQuery({ ...env, ADMIN_PORT: '0' })));
  const keys = new ApiKeyStore(pipeline.redis, new AccountDirectory(pipeline.redis, REDIS_PREFIX), REDIS_PREFIX);
  key = (await keys.create({ account: 'acme', role: 'admin', clientId: 'test' }, new Date())).key;
  await deliver([usageEvent(0)]);
  while (await sealNext(pipeline.warehouse, SEALED_UNTIL));
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
  await redis.kill();
  await rm(dataDir, { recursive: true });
});

/** Resolves when they are acknowledged. */
async function deliver(events: readonly UsageEventInput[]): Promise<void> {
  await pipeline.queue.add('usage', { events });
  await drained(pipeline.queue, 30_000);
}

const body = z.object({ summary: z.object({ totalUsage: z.number().optional(), totalCost: z.number() }) });

/** The account's events on a day: each is one GB-second. */
async function ask({ url }: HttpProcess, day: string): Promise<number> {
  const window = `startTime=${day}T00:00:00Z&endTime=${day}T23:00:00Z&groupBy=billing_dimension`;
  const response = await fetch(`${url}/v0/accounts/acme/metrics?${window}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  if (response.status !== 200) throw new Error(`${response.status}: ${await response.text()}`);
  return body.parse(await response.json()).summary.totalUsage ?? Number.NaN;
}

const askBoth = (day: string) => Promise.all(queries.map((query) => ask(query, day)));

async function hits(): Promise<number> {
  const pages = await Promise.all(queries.map(async (query) => scrape(await adminUrl(query))));
  return pages.reduce((sum, page) => sum + (page.value('meterline_kept_answers_total{from="hit"}') ?? 0), 0);
}

/** What both processes answer about a day, and whether that was kept since before. */
async function askAgain(day: string) {
  const before = await hits();
  const usage = await askBoth(day);
  return { usage, kept: (await hits()) - before };
}

describe('kept answers', () => {
  it.each(DAYS)('of %s have each event in the next answer of each process after its acknowledgement', async (day) => {
    const first = day === DAYS[0] ? 0 : 24 * HOUR;
    const [known = 0] = await askBoth(day);
    expect(await askAgain(day)).toEqual({ usage: [known, known], kept: 2 });
    for (let n = 1; n <= 5; n += 1) {
      await deliver([usageEvent(first + n)]);
      expect(await askAgain(day)).toEqual({ usage: [known + n, known + n], kept: 0 });
      expect(await askAgain(day)).toEqual({ usage: [known + n, known + n], kept: 2 });
    }
    await deliver([usageEvent(first + 5, { revision: 1, void: true })]);
    expect(await askBoth(day)).toEqual([known + 4, known + 4]);
  });

  it('of sealed hours stay while current events come in', async () => {
    const [known = 0] = await askBoth(DAYS[0]);
    await deliver([usageEvent(24 * HOUR + 100)]);
    expect(await askAgain(DAYS[0])).toEqual({ usage: [known, known], kept: 2 });
  });

  it('are not given when Redis has come back from an older state', async () => {
    const [known = 0] = await askBoth(DAYS[0]);
    const copy = join(dataDir, 'older');
    await cp(join(dataDir, 'redis'), copy, { recursive: true });
    await deliver([usageEvent(200)]);
    // As the append-only file is that loses its end, such as with appendfsync everysec: the stamps of before are back.
    await redis.kill();
    await rm(join(dataDir, 'redis'), { recursive: true });
    await cp(copy, join(dataDir, 'redis'), { recursive: true });
    redis = await startRedis({ dataDir, port: redis.port });
    await drained(pipeline.queue, 60_000);
    for (const query of queries) {
      for (;;) {
        const response = await fetch(`${query.url}/readyz`);
        if (response.status === 200) break;
      }
    }
    expect(await askBoth(DAYS[0])).toEqual([known + 1, known + 1]);
  });
});
