/** A 202 is true whatever becomes of Redis: silent, full, read-only, or not durable any more. */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, expect, it } from '@jest/globals';
import { type RunningServer, type Servers, startServers } from '@meterline/local-stack';
import { z } from 'zod';
import { begin, type CollectorFixture, event, inFlight, startCollectorFixture } from '../harness/collector.js';
import { whileFrozen } from '../harness/programs.js';
import { fillRedis } from '../harness/redis-servers.js';
import { launchService } from '../harness/services.js';
import { until } from '../harness/waiting.js';
import { adminUrl, scrape } from '../observability/scrape.js';

const MiB = 1024 * 1024;

let servers: Servers;
let server: RunningServer;
let fixture: CollectorFixture;
let account: string;
let key: string;
beforeAll(async () => {
  servers = await startServers({ shards: 0 });
  server = servers.redis;
  fixture = await startCollectorFixture({ METERLINE_CONSTANTS: JSON.stringify({ writeMs: 500 }) }, server.url);
  ({ account, key } = await fixture.account());
});
afterEach(() => fixture.takeJobs());
afterAll(async () => {
  await fixture.close();
  await servers.stop();
});

const send = (events: readonly unknown[]) => fixture.send(key, JSON.stringify(events));
const isTaken = async () => (await send([event()])).status === 202;
const readiness = () => fetch(`${fixture.service.url}/readyz`);
const isReady = async () => (await readiness()).status === 200;

async function expectRefusal() {
  const response = await send([event()]);
  const expected = [503, '5', { error: 'queue_unavailable' }];
  expect([response.status, response.headers.get('retry-after'), response.body]).toMatchObject(expected);
}

it('a Redis that is full refuses events, and takes them again once it is not', async () => {
  await fillRedis(fixture.redis);
  await expectRefusal();
  await fixture.redis.config('SET', 'maxmemory', '0');
  expect(await isTaken()).toBe(true);
});

it('a Redis that is a replica refuses events', async () => {
  await fixture.redis.replicaof('127.0.0.1', '1');
  await expectRefusal();
  await fixture.redis.replicaof('NO', 'ONE');
  // The connection was left: a master may be behind the same address by now.
  await until('events are taken again', isTaken);
});

it.each([
  ['appendfsync', 'everysec', 'always'],
  ['no-appendfsync-on-rewrite', 'yes', 'no'],
  ['appendonly', 'no', 'yes'],
])(
  'a Redis that has %s %s is asked again within seconds, and nothing is answered with 202 from then on',
  async (name, lax, strict) => {
    await fixture.redis.config('SET', name, lax);
    await until('the collector has noticed', async () => !(await isReady()));
    const { message } = z.object({ message: z.string() }).parse(await (await readiness()).json());
    expect(message).toMatch(`set ${name} ${strict}.`);
    await expectRefusal();
    await fixture.redis.config('SET', name, strict);
    await until('events are taken again', isTaken);
  },
);

it('a Redis that is silent is not waited for, and what was sent meanwhile and sent again counts once', async () => {
  const sent = event();
  // A response that waited for Redis would never come: Redis goes on only after it.
  await whileFrozen(server.pid, async () => expect((await send([sent])).status).toBe(503));
  await until('events are taken again', async () => (await send([sent])).status === 202);
  const ids = (await fixture.takeJobs()).flat().map(({ eventId }) => eventId);
  expect(new Set(ids)).toEqual(new Set([sent['eventId']]));
});

it('a Redis that is slow holds what a client has sent until it is written, also when the client has gone, and no longer', async () => {
  const slow = await fixture.startCollector({
    ADMIN_PORT: '0',
    METERLINE_CONSTANTS: JSON.stringify({ writeMs: 25_000 }),
    REDIS_URL: `${server.url}?durability=assumed`,
  });
  const admin = await adminUrl(slow);
  const writes = async () => (await scrape(admin)).value('meterline_collector_job_events_count');
  const body = JSON.stringify([event({ resourceName: 'x'.repeat(200) }), event()]);
  const socket = await begin(slow, key, body.length, body.slice(0, 1));
  await until('the caller is known', async () => (await inFlight(slow)) > 0);
  await whileFrozen(server.pid, async () => {
    socket.write(body.slice(1));
    await until('it is being written', async () => (await writes()) === 1);
    socket.resetAndDestroy();
    await slow.entry(({ path, durationMs }) => path === '/v0/events' && durationMs !== undefined);
    expect(await inFlight(slow)).toBe(body.length);
  });
  await until('nothing is under way', async () => (await inFlight(slow)) === 0);
  expect(await fixture.takeJobs()).toMatchObject([[{ accountId: account }, { accountId: account }]]);
  expect(await slow.stop()).toBe(0);
});

it('a Redis that is slow does not let bodies grow over what an account may hold, by being decoded while others wait', async () => {
  const slow = await fixture.startCollector({
    ADMIN_PORT: '0',
    METERLINE_CONSTANTS: JSON.stringify({ maxBytes: 24 * MiB, writeMs: 25_000 }),
    REDIS_URL: `${server.url}?durability=assumed`,
  });
  // Each body is 4 MiB when it is decoded: an account has room for one.
  const body = gzipSync(JSON.stringify([event()]).padEnd(4 * MiB));
  const headers = ['Connection: close', 'Content-Encoding: gzip'];
  const [sockets, statuses]: [Socket[], string[]] = [[], []];
  for (let n = 0; n < 4; n += 1) {
    const socket = await begin(slow, key, body.length, body.subarray(0, -1), headers);
    socket.on('data', (response) => statuses.push(/^HTTP\/1.1 (\d+)/.exec(String(response))?.[1] ?? ''));
    sockets.push(socket);
  }
  await until('all but a byte has been read', async () => (await inFlight(slow)) >= 4 * (body.length - 1));
  await whileFrozen(server.pid, async () => {
    for (const socket of sockets) socket.write(body.subarray(-1));
    await until('three are refused', async () => statuses.length === 3);
    await until('the other is decoded', async () => (await inFlight(slow)) >= 4 * MiB);
    expect(await inFlight(slow)).toBe(4 * MiB);
  });
  await until('the other is answered', async () => statuses.length === 4);
  expect(statuses).toEqual(['429', '429', '429', '202']);
  await until('nothing is under way', async () => (await inFlight(slow)) === 0);
  expect(await slow.stop()).toBe(0);
});

it('a collector does not start with a Redis that may lose what it has taken, and says what to set', async () => {
  await fixture.redis.config('SET', 'appendfsync', 'everysec');
  try {
    const service = launchService('collector', { REDIS_URL: server.url, PORT: '0' });
    expect(await service.exited).toMatchObject({ code: 1 });
    expect(service.errorLines()).toEqual([
      'meterline-collector: Redis may lose events that it has accepted, with appendfsync everysec: set appendfsync always',
    ]);
  } finally {
    await fixture.redis.config('SET', 'appendfsync', 'always');
  }
});
