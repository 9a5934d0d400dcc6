/** Stamps on a Redis that forgets its scripts, and is put back to an older state: not the one that all tests share. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { type RunningRedis, startRedis } from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { uniquePrefix } from '../../../test/stack.js';
import { AnswerStamps, type Stamps } from './answer-stamps.js';

let dataDir: string;
let server: RunningRedis;
let redis: Redis;
let other: Redis;
beforeAll(async () => {
  dataDir = await mkdtemp(join(tmpdir(), 'meterline-stamps-'));
  server = await startRedis({ dataDir });
  redis = new Redis(server.url).setMaxListeners(0);
  other = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  other.disconnect();
  await server.kill();
  await rm(dataDir, { recursive: true });
});

let prefix: string;
/** Of two query processes, and of a worker. */
let stamps: AnswerStamps;
let second: AnswerStamps;
let writer: AnswerStamps;
beforeEach(() => {
  prefix = uniquePrefix();
  [stamps, second, writer] = [
    new AnswerStamps(redis, prefix),
    new AnswerStamps(redis, prefix),
    new AnswerStamps(other, prefix),
  ];
});
async function read(from: AnswerStamps, account = 'acme'): Promise<Stamps> {
  const found = await from.read(account);
  if (!found) throw new Error('Redis did not say');
  return found;
}

/** Which of the two are the same as before. */
function same(before: Stamps, after: Stamps) {
  return { sealed: before.sealed === after.sealed, any: before.any === after.any };
}

describe('stamps', () => {
  it('are renewed without a listener that stays on the connection, which operations use for many renewals', async () => {
    const listeners = () => other.eventNames().map((name) => [name, other.listenerCount(name)]);
    const before = listeners();
    await new AnswerStamps(other, prefix).renewAll();
    await new AnswerStamps(other, prefix).renew(['acme'], ['acme']);
    expect(listeners()).toEqual(before);
  });

  it('stay as long as nobody renews them, and differ between accounts', async () => {
    const first = await read(stamps);
    expect(same(first, await read(stamps))).toEqual({ sealed: true, any: true });
    expect(same(first, await read(stamps, 'globex'))).toEqual({ sealed: false, any: false });
  });

  it('change when they are renewed, for every process, and those of other accounts do not', async () => {
    const before = [await read(stamps), await read(second), await read(stamps, 'globex')] as const;
    await writer.renew(['acme'], []);
    expect(same(before[0], await read(stamps))).toEqual({ sealed: true, any: false });
    expect(same(before[1], await read(second))).toEqual({ sealed: true, any: false });
    await writer.renew(['acme'], ['acme']);
    expect(same(before[0], await read(stamps))).toEqual({ sealed: false, any: false });
    expect(same(before[1], await read(second))).toEqual({ sealed: false, any: false });
    expect(same(before[2], await read(stamps, 'globex'))).toEqual({ sealed: true, any: true });
  });

  it('of thousands of accounts are renewed at once', async () => {
    const accounts = Array.from({ length: 2_500 }, (_, n) => `account-${n}`);
    const before = await Promise.all(accounts.map((account) => read(stamps, account)));
    await writer.renew(accounts, accounts);
    const after = await Promise.all(accounts.map((account) => read(stamps, account)));
    const stayed = before.filter(({ any, sealed }, n) => any === after[n]?.any || sealed === after[n]?.sealed);
    expect(stayed).toEqual([]);
  });

  it('do not come back with an older state of Redis, once the process has another connection', async () => {
    const before = await read(stamps);
    const older = await redis.mget(`${prefix}:stamps:sealed:acme`, `${prefix}:stamps:any:acme`);
    await writer.renew(['acme'], ['acme']);
    const closed = new Promise((resolve) => redis.once('close', resolve));
    const id = await redis.client('ID');
    await other.client('KILL', 'ID', id);
    await closed;
    await redis.mset({ [`${prefix}:stamps:sealed:acme`]: `${older[0]}`, [`${prefix}:stamps:any:acme`]: `${older[1]}` });
    expect(same(before, await read(stamps))).toEqual({ sealed: false, any: false });
  });

  it('do not come back with another server behind the same connection', async () => {
    const before = await read(stamps);
    const kept = await read(second);
    // As a replica that has taken over behind a proxy: it knows no scripts of this process, and has what it was sent in time.
    await redis.script('FLUSH');
    expect(same(before, await read(stamps))).toEqual({ sealed: false, any: false });
    // Each process notices for itself, whichever came first.
    expect(same(kept, await read(second))).toEqual({ sealed: false, any: false });
    const again = await read(stamps);
    expect(same(again, await read(stamps))).toEqual({ sealed: true, any: true });
  });

  it('do not come back with a server that takes over once more behind the same connection', async () => {
    const replica = await startRedis({ dataDir: join(dataDir, 'replica') });
    const balancer = await openBalancer(server.url);
    const [through, its] = [new Redis(balancer.url), new Redis(replica.url)];
    const keys = ['sealed', 'any'].map((kind) => `${prefix}:stamps:${kind}:acme`);
    try {
      const asked = new AnswerStamps(through, prefix);
      await read(asked);
      balancer.leadTo(replica.url);
      const kept = await read(asked);
      // As its replica it was sent these stamps, and not what renewed them; and it knew the process when it was the master.
      for (const key of keys) await redis.set(key, `${await its.get(key)}`);
      balancer.leadTo(server.url);
      expect(same(kept, await read(asked))).toEqual({ sealed: false, any: false });
      const again = await read(asked);
      expect(same(again, await read(asked))).toEqual({ sealed: true, any: true });
    } finally {
      through.disconnect();
      its.disconnect();
      balancer.close();
      await replica.kill();
    }
  });

  it('are forgotten when nobody asks for an hour', async () => {
    await read(stamps);
    for (const kind of ['sealed', 'any']) {
      const left = await redis.pttl(`${prefix}:stamps:${kind}:acme`);
      expect(left).toBeGreaterThan(0);
      expect(left).toBeLessThanOrEqual(3_600_000);
    }
  });

  it('are undefined where Redis does not answer, or may not be written to', async () => {
    const away = new Redis('redis://127.0.0.1:1', {
      lazyConnect: true,
      enableOfflineQueue: false,
      retryStrategy: null,
    });
    away.on('error', () => undefined);
    expect(await new AnswerStamps(away, prefix).read('acme')).toBeUndefined();
    away.disconnect();
    await redis.lpush(`${prefix}:stamps:any:acme`, 'no stamp');
    expect(await stamps.read('acme')).toBeUndefined();
  });
});

/** Keeps the connections of clients, whichever server it leads them to. */
async function openBalancer(firstUrl: string) {
  // The client knows the password of neither server; the answer to AUTH is not for it.
  const connectTo = (url: string, answer: (bytes: Buffer) => void) => {
    const { port, password } = new URL(url);
    const upstream = connect(Number(port), '127.0.0.1');
    upstream.write(`AUTH ${password}\r\n`);
    upstream.once('data', (bytes) => {
      answer(bytes.subarray('+OK\r\n'.length));
      upstream.on('data', answer);
    });
    return upstream;
  };
  let leadTo: (url: string) => void = () => undefined;
  const listener = createServer((client) => {
    const servers = new Map<string, Socket>();
    const lead = (url: string) => {
      const upstream = servers.get(url) ?? connectTo(url, (bytes) => client.write(bytes));
      servers.set(url, upstream);
      client.removeAllListeners('data').on('data', (bytes) => upstream.write(bytes));
    };
    lead(firstUrl);
    leadTo = lead;
    client.on('close', () => {
      for (const upstream of servers.values()) upstream.destroy();
    });
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('A TCP server has no TCP address');
  return {
    url: `redis://127.0.0.1:${address.port}`,
    leadTo: (url: string) => leadTo(url),
    close: () => listener.close(),
  };
}
