/** Connections to one Redis whose other end falls silent for ever, as when a firewall forgets them; new ones work. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { createRedisClient } from '@meterline/service/access';
import { Queue, Worker } from 'bullmq';
import { testRedisUrl, uniquePrefix } from '../harness/stack.js';

const TIMEOUT_MS = 120_000;

let through: Awaited<ReturnType<typeof openForgetful>>;
beforeAll(async () => {
  through = await openForgetful(testRedisUrl());
});
afterAll(() => through.close());

it(
  'a worker and other clients replace connections that fell silent, and an idle worker keeps its own',
  async () => {
    const prefix = uniquePrefix();
    // As a worker has them: it waits for Redis as long as it takes.
    const open = () => createRedisClient(through.url, { maxRetriesPerRequest: null, retryStrategy: () => 100 });
    const [redis, connection] = [open(), open()];
    const straight = createRedisClient(testRedisUrl(), {});
    const queue = new Queue('silent', { connection: straight, prefix });
    const done: string[] = [];
    const worker = new Worker('silent', async ({ name }) => void done.push(name), { connection, prefix });
    worker.on('error', () => undefined);
    const finished = (name: string) =>
      new Promise<void>((resolve) => worker.on('completed', (job) => job.name === name && resolve()));
    try {
      const first = finished('first');
      await queue.add('first', {});
      await Promise.all([first, redis.ping()]);
      const made = through.made();
      // Longer than a connection may be silent that owes an answer: the worker waits for jobs, in pieces of five seconds.
      await new Promise((resolve) => setTimeout(resolve, 20_000));
      expect(through.made()).toBe(made);

      through.forget();
      const second = finished('second');
      await queue.add('second', {});
      expect(await redis.ping()).toBe('PONG');
      await second;
      expect(done).toEqual(['first', 'second']);
    } finally {
      await worker.close(true);
      await queue.close();
      for (const each of [redis, connection, straight]) each.disconnect();
    }
  },
  TIMEOUT_MS,
);

/** Leads each connection to the server until it forgets those that stand: then nothing goes through them, for ever. */
async function openForgetful(url: string) {
  const { hostname, port, username, password } = new URL(url);
  const links = new Set<readonly [Socket, Socket]>();
  let made = 0;
  const listener = createServer((client) => {
    made += 1;
    const server = connect(Number(port), hostname);
    const link = [client, server] as const;
    links.add(link);
    client.pipe(server).pipe(client);
    for (const [end, other] of [link, [server, client]] as const) {
      end.on('error', () => other.destroy());
      end.on('close', () => other.destroy());
    }
  });
  await once(listener.listen(0, '127.0.0.1'), 'listening');
  const address = listener.address();
  if (address === null || typeof address === 'string') throw new Error('A TCP server has no TCP address');
  return {
    url: `redis://${username}${password && `:${password}@`}127.0.0.1:${address.port}`,
    made: () => made,
    forget: () => {
      for (const [client, server] of links) {
        client.unpipe(server).resume();
        server.unpipe(client).resume();
      }
    },
    close: () => {
      for (const link of links) for (const end of link) end.destroy();
      listener.close();
    },
  };
}
