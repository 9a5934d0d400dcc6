/** Sentinels replace a master that has died while connections to it are being made again: these find the new one. */
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, expect, it, jest } from '@jest/globals';
import { createRedisClient } from '@meterline/access';
import { openEmitter } from '@meterline/emitter';
import { Redis } from 'ioredis';
import { TcpProxy } from '../faults/tcp-proxy.js';
import { startWatchedRedis, type WatchedRedis } from '../redis-topology.js';
import { until, usageEvent } from './pipeline.js';

jest.setTimeout(120_000);

const NEWS = '+switch-master';

let redis: WatchedRedis;
let proxy: TcpProxy;
let url: string;
beforeAll(async () => {
  redis = await startWatchedRedis();
  const sentinel = Number(/:(\d+)\//.exec(redis.url)?.[1]);
  proxy = await TcpProxy.open(sentinel);
  url = redis.url.replace(`:${sentinel}/`, `:${proxy.port}/`);
});
afterAll(async () => {
  await proxy.close();
  await redis.close();
});

it('that of a service, and that of an emitter', async () => {
  const [master, replica] = redis.servers;
  const service = createRedisClient(url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  service.on('error', () => undefined);
  const emitter = await openEmitter({ url, batchEvents: 1, onProblem: () => undefined });
  const sentinel = new Redis({ port: proxy.port });
  const listener = new Redis({ port: proxy.port });
  try {
    const heard = new Promise((resolve) => listener.once('message', resolve));
    await listener.subscribe(NEWS);
    await service.ping();
    emitter.record(usageEvent(0));
    await until('all listen', 20_000, async () => subscribers(String(await sentinel.client('LIST'))) === 3);

    proxy.treat({ kind: 'hold', text: 'get-master-addr-by-name' });
    await master.kill();
    await until('both ask for the master', 20_000, async () => proxy.strikes >= 2);
    await redis.promote(replica);
    await heard;
    // The others have heard it in the same moment, if they listen.
    await delay(100);
    proxy.treat({ kind: 'pass' });

    expect(await service.ping()).toBe('PONG');
    emitter.record(usageEvent(1));
    await emitter.close({ timeoutMs: 30_000 });
    expect(emitter.counters).toMatchObject({ sent: 2, unsent: 0 });
  } finally {
    await emitter.close({ timeoutMs: 0 });
    for (const connection of [service, sentinel, listener]) connection.disconnect();
  }
});

function subscribers(clients: string): number {
  return clients.split('\n').filter((client) => /\bsub=1\b/.test(client)).length;
}
