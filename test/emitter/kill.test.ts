/** The short form of `npm run test:emitter`: each fault that leaves the servers alone, and killing with and without a spool. */

import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { openPipeline, type Pipeline } from '../e2e/pipeline.js';
import { killServices, startCollector, startIngest, startQuery } from '../services.js';
import { type Door, PRODUCER_FAULTS } from './producer-faults.js';
import { type Ground, playRound } from './round.js';

const WITHIN_MS = 110_000;
const PLAYED: readonly (readonly [fault: string, door: Door, hasSpool: boolean])[] = [
  ['killed', 'queue', true],
  ['killed', 'collector', false],
  ['cut-off-and-killed', 'collector', true],
  ['frozen', 'queue', true],
  ['collector-killed', 'collector', false],
  ['terminated', 'queue', false],
];

let pipeline: Pipeline;
let ground: Ground;

beforeAll(async () => {
  pipeline = await openPipeline();
  const { env, queue, redis, warehouse } = pipeline;
  const secret = { CURSOR_SECRET: 'a secret of the tests, 32 characters or more' };
  const [, query, first] = await Promise.all([
    startIngest(env),
    startQuery({ ...env, ...secret }),
    startCollector(env),
  ]);
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  ground = {
    urls: { queue: env['REDIS_URL'] ?? '', collector: first.url },
    prefix: env['QUEUE_PREFIX'] ?? '',
    warehouse,
    asker: async (account) => {
      const { key } = await keys.create({ account, role: 'admin', clientId: 'emitter-tests' }, new Date());
      return { url: query.url, key };
    },
    emitterKey: async (account) =>
      (await keys.create({ account, role: 'emitter', clientId: 'emitter-tests' }, new Date())).key,
    openJobs: () => queue.getJobCountByTypes('waiting', 'active', 'delayed', 'failed'),
    restartRedis: () => Promise.reject(new Error('this Redis is shared')),
    restartCollector: async () => {
      await first.kill();
      await startCollector({ ...env, PORT: new URL(first.url).port });
    },
  };
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
});

it.concurrent.each(PLAYED)(
  '%s, sending to the %s (with a spool: %s): nothing that was promised is lost or doubled',
  async (name, door, hasSpool) => {
    const fault = PRODUCER_FAULTS.find((known) => known.name === name);
    if (fault === undefined) throw new Error(name);
    const round = { fault, door, hasSpool, seed: 1, brief: true };
    const { recorded, promised, counted, ...verdict } = await playRound(ground, round, AbortSignal.timeout(WITHIN_MS));
    expect(verdict).toEqual({ lost: [], doubled: [], complaints: [] });
    expect(promised).toBeGreaterThan(0);
    expect(counted).toBeGreaterThanOrEqual(promised);
    expect(recorded + 3).toBeGreaterThanOrEqual(counted);
  },
);
