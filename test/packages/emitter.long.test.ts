/** The emitter's package works where nothing else of Meterline is. */
import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { TestCollector } from '../emitter/fixture.js';
import { installPacked, type PackedPackage } from './packed-package.js';

const PACKAGE = new URL('../../packages/emitter/', import.meta.url);

const WRONG = `import { openEmitter } from '@meterline/emitter';
const meter = await openEmitter({ url: 'http://127.0.0.1:1', apiKey: 'key' });
const names = { accountId: 'a', workspace: 'w', resourceType: 'agent', resourceName: 'r' } as const;
meter.record({ ...names, billingDimension: 'coffee', usage: 1 });
meter.start({ ...names, billingDimension: 'agent_async_requests_count', gb: 1 });
meter.add({ ...names, billingDimension: 'agent_async_requests_count', usage: 1, eventId: 'x' });
`;

const ALL_SENT = /^accepted string\n\{\n {2}recorded: [23],\n {2}sent: [23],\n {2}retried: 0,\n/;
/** What the description records, once and a thousand times. */
const SHOWN = ['12.5', '1000'].map((usage) => expect.objectContaining({ usage, resourceName: 'support' }));

describe('packed and installed alone', () => {
  let packed: PackedPackage;
  beforeAll(async () => {
    const readme = await readFile(new URL('README.md', PACKAGE), 'utf8');
    const blocks = [...readme.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code]) => code);
    expect(blocks).toHaveLength(4);
    packed = await installPacked('emitter', { readme: blocks.join(''), wrong: WRONG });
  });
  afterAll(() => packed.remove());

  it('the packed emitter brings the catalog and uuid, and nothing else', async () => {
    const { dependencies } = JSON.parse(await readFile(new URL('package.json', PACKAGE), 'utf8'));
    expect(Object.keys(dependencies)).toEqual(['@meterline/catalog', 'uuid']);
  });

  it('the packed emitter refuses what is not billed, and usage with an id in a sum, before the program runs', () => {
    expect(packed.faults.map((fault) => fault.slice(0, 24))).toEqual([
      'wrong.ts(4,26): error TS',
      'wrong.ts(5,25): error TS',
      'wrong.ts(6,81): error TS',
    ]);
  });

  it('the packed emitter does what its description shows', async () => {
    const collector = await TestCollector.start();
    const output = await packed.run('readme', {
      COLLECTOR_URL: collector.url,
      METERLINE_EMITTER_KEY: 'mlk_1',
    });
    collector.stop();
    expect(output).toMatch(ALL_SENT);
    expect(new Set(collector.received.map(({ path, key }) => `${path} ${key}`))).toEqual(
      new Set(['/v0/accounts/acme/events Bearer mlk_1']),
    );
    expect(collector.events).toEqual(expect.arrayContaining(SHOWN));
  });
});
