/** meterline erase: everything of one account, and nothing of another. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { drained, enqueueData, openPipeline, type Pipeline, stored, usageEvent } from '../e2e/pipeline.js';
import { killServices, startIngest } from '../services.js';
import { select, uniquePrefix } from '../stack.js';
import { runCommand } from './run-command.js';
import type { MeterlineOptions } from './run-meterline.js';

let pipeline: Pipeline;
let keys: ApiKeyStore;
beforeAll(async () => {
  pipeline = await openPipeline();
  keys = new ApiKeyStore(pipeline.redis, new AccountDirectory(pipeline.redis, REDIS_PREFIX), REDIS_PREFIX);
  await startIngest(pipeline.env);
});
afterAll(async () => {
  await killServices();
  await pipeline.close();
});

let accountId: string;
let key: string;
let otherKey: string;
/** Events in two months, refused ones, and a key; the same for another account, which is a neighbour by its name. */
beforeEach(async () => {
  accountId = uniquePrefix();
  const other = `${accountId}-2`;
  const events = [accountId, other].flatMap((account) => [
    usageEvent(1, { accountId: account }),
    usageEvent(2, { accountId: account, timestamp: '2026-03-01T00:00:00Z' }),
    { ...usageEvent(3, { accountId: account }), usage: -1 },
  ]);
  await enqueueData(pipeline.queue, { events });
  await drained(pipeline.queue);
  const newKey = (account: string) => keys.create({ account, role: 'admin', clientId: 'client' }, new Date());
  key = (await newKey(accountId)).key;
  otherKey = (await newKey(other)).key;
});

function erase(args: readonly string[] = [], options: MeterlineOptions = {}) {
  return runCommand(['erase', '--account', accountId, ...args], { ...options, env: pipeline.env });
}

async function refusals(account: string): Promise<number> {
  const query = 'SELECT toUInt32(count()) AS refusals FROM rejected_events FINAL WHERE account_id = {account: String}';
  return (await select<{ refusals: number }>(pipeline.warehouse, query, { account }))[0]?.refusals ?? -1;
}

describe('meterline erase', () => {
  it('erases events, refused events and keys of the account after its name was typed, and leaves its neighbour', async () => {
    const run = await erase([], { stdin: `${accountId}\n` });
    expect(run).toMatchObject({ code: 0, stdout: 'Erased 2 stored events, 1 refused event, 1 API key.\n' });
    expect(run.stderr).toContain(`Account ${accountId} has 2 stored events, 1 refused event, 1 API key.`);
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 0 });
    expect(await refusals(accountId)).toBe(0);
    expect(await keys.authenticate(key, new Date())).toBeUndefined();

    expect(await stored(pipeline.warehouse, `${accountId}-2`)).toMatchObject({ events: 2 });
    expect(await refusals(`${accountId}-2`)).toBe(1);
    expect(await keys.authenticate(otherKey, new Date())).toBeDefined();
  });

  it('again finds nothing, and an event that comes afterwards counts, also one that was erased', async () => {
    expect(await erase(['--confirm', accountId])).toMatchObject({ code: 0 });
    const again = await erase(['--confirm', accountId, '--json']);
    expect(JSON.parse(again.stdout)).toEqual({
      account: accountId,
      usageEventRows: 0,
      rejectedEventRows: 0,
      apiKeys: 0,
    });
    await enqueueData(pipeline.queue, { events: [usageEvent(1, { accountId }), usageEvent(4, { accountId })] });
    await drained(pipeline.queue);
    expect(await stored(pipeline.warehouse, accountId)).toEqual({ events: 2, usage: 2 });
  });

  it('says so when rows have been stored meanwhile, and erases them when it runs again', async () => {
    const answer = async () => {
      const late = usageEvent(5, { accountId, timestamp: '2026-04-01T00:00:00Z' });
      await enqueueData(pipeline.queue, { events: [late] });
      await drained(pipeline.queue);
      return `${accountId}\n`;
    };
    expect(await erase([], { stdin: { at: 'Type the name', answer } })).toMatchObject({
      code: 1,
      stdout: 'Erased 2 stored events, 1 refused event, 1 API key.\n',
      stderr: expect.stringContaining(`rows of ${accountId} were stored meanwhile, 1 so far; stop its producers`),
    });
    expect(await erase(['--confirm', accountId])).toMatchObject({ code: 0 });
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 0 });
  });

  it.each([
    ['nothing', ''],
    ['a yes', 'yes\n'],
    ['another name', 'acme\n'],
  ])('erases nothing after %s', async (_, stdin) => {
    const run = await erase([], { stdin });
    expect(run).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('not confirmed; nothing was changed'),
    });
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 2 });
    expect(await keys.authenticate(key, new Date())).toBeDefined();
  });

  it('does not take another account for a confirmation', async () => {
    expect(await erase(['--confirm', `${accountId}-2`])).toMatchObject({ code: 2, stdout: '' });
    expect(await stored(pipeline.warehouse, accountId)).toMatchObject({ events: 2 });
  });
});
