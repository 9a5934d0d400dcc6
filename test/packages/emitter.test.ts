/** The emitter's package works where nothing else of Meterline is. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { eventsOfJob, QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { testRedisUrl, uniquePrefix } from '../stack.js';
import { installPacked, type PackedPackage } from './packed-package.js';

const PACKAGE = new URL('../../packages/emitter/', import.meta.url);

const ALONE = `import { EmitterError, openEmitter } from '@meterline/emitter';
try {
  await openEmitter({ url: 'redis://127.0.0.1:6379' });
} catch (error) {
  if (error instanceof EmitterError) console.log(error.code, error.message);
}
`;

const WRONG = `import { openEmitter } from '@meterline/emitter';
const meter = await openEmitter({ url: 'redis://127.0.0.1:6379' });
const names = { accountId: 'a', workspace: 'w', resourceType: 'agent', resourceName: 'r' } as const;
meter.record({ ...names, billingDimension: 'coffee', usage: 1 });
meter.start({ ...names, billingDimension: 'agent_async_requests_count', gb: 1 });
meter.add({ ...names, billingDimension: 'agent_async_requests_count', usage: 1, eventId: 'x' });
`;

const ALL_SENT = /^accepted string\n\{\n {2}recorded: [23],\n {2}sent: [23],\n {2}retried: 0,\n/;
/** What the description records, once and a thousand times. */
const SHOWN = ['12.5', '1000'].map((usage) => expect.objectContaining({ usage, resourceName: 'support' }));

describe('packed and installed alone', () => {
  const prefix = uniquePrefix();
  let packed: PackedPackage;
  beforeAll(async () => {
    const readme = await readFile(new URL('README.md', PACKAGE), 'utf8');
    const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
    expect(blocks).toHaveLength(4);
    packed = await installPacked('emitter', { readme: blocks.join(''), alone: ALONE, wrong: WRONG });
  });
  afterAll(() => packed.remove());

  it('is its code, a description and a licence', () => {
    expect(packed.files).toEqual(expect.arrayContaining(['LICENSE', 'README.md', 'dist/index.d.ts', 'dist/index.js']));
    expect(packed.files.filter((path) => /test|tsbuildinfo|tsconfig/.test(path))).toEqual([]);
  });

  it('refuses what is not billed, and usage with an id in a sum, before the program runs', () => {
    expect(packed.faults.map((fault) => fault.slice(0, 24))).toEqual([
      'wrong.ts(4,26): error TS',
      'wrong.ts(5,25): error TS',
      'wrong.ts(6,81): error TS',
    ]);
  });

  it('does what its description shows, with a collector', async () => {
    const collector = createServer(async (request, response) => {
      paths.add(`${request.method} ${request.url} ${request.headers.authorization}`);
      const results = [];
      for (const event of JSON.parse(await text(request))) {
        sent.push(event);
        results.push({ index: results.length, eventId: event.eventId, status: 'accepted' });
      }
      response.writeHead(202).end(JSON.stringify({ accepted: results.length, refused: 0, results }));
    });
    const paths = new Set<string>();
    const sent: unknown[] = [];
    await once(collector.listen(0, '127.0.0.1'), 'listening');
    const address = collector.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const output = await packed.run('readme', { METERLINE_COLLECTOR_URL: url, METERLINE_EMITTER_KEY: 'mlk_1' });
    collector.close();
    expect(output).toMatch(ALL_SENT);
    expect([...paths]).toEqual(['POST /v0/accounts/acme/events Bearer mlk_1']);
    expect(sent).toEqual(expect.arrayContaining(SHOWN));
  });

  it('says what to install for the queue', async () => {
    expect(await packed.run('alone', {})).toBe(
      'missing_package sending to Redis needs two packages: npm install bullmq ioredis\n',
    );
  });

  it('does what its description shows, with the queue', async () => {
    await packed.link('bullmq', 'ioredis');
    const output = await packed.run('readme', { METERLINE_COLLECTOR_URL: testRedisUrl(), QUEUE_PREFIX: prefix });
    expect(output).toMatch(ALL_SENT);
    const queue = new Queue(QUEUE_NAME, { prefix, connection: { url: testRedisUrl() } });
    const events = (await queue.getJobs(['waiting'])).flatMap(({ data }) => {
      const checked = eventsOfJob(data);
      return checked.ok ? checked.value : [];
    });
    await queue.obliterate({ force: true });
    await queue.close();
    expect(events).toEqual(expect.arrayContaining(SHOWN));
  });
});
