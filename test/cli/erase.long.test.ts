/** meterline erase: everything of one account, and nothing of another. */
import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { stored } from '../harness/queue.js';
import { select, uniquePrefix } from '../harness/stack.js';
import { runCommand } from './run-command.js';
import type { MeterlineOptions } from './run-meterline.js';

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.startIngest();
});
afterAll(() => product.close());

let accountId: string;
let key: string;
let otherKey: string;
/** Events in two months, rejected ones, and a key; the same for another account, which is a neighbour by its name. */
beforeEach(async () => {
  accountId = uniquePrefix();
  const other = `${accountId}-2`;
  const events = [accountId, other].flatMap((account) => [
    usageEvent(1, { accountId: account }),
    usageEvent(2, { accountId: account, timestamp: '2026-03-01T00:00:00Z' }),
    { ...usageEvent(3, { accountId: account }), usage: -1 },
  ]);
  await product.send(...events);
  key = await product.key(accountId);
  otherKey = await product.key(other);
});

function erase(args: readonly string[] = [], options: MeterlineOptions = {}) {
  return runCommand(['erase', '--account', accountId, ...args], { ...options, env: product.env });
}

async function rejections(account: string): Promise<number> {
  const query =
    'SELECT toUInt32(count()) AS rejections FROM rejected_events FINAL WHERE account_id = {account: String}';
  return (await select<{ rejections: number }>(product.warehouse, query, { account }))[0]?.rejections ?? -1;
}

describe('meterline erase', () => {
  it('erases events, rejected events and keys of the account after its name was typed, and leaves its neighbour', async () => {
    const run = await erase([], { stdin: `${accountId}\n` });
    expect(run).toMatchObject({ code: 0, stdout: 'Erased 2 stored events, 1 rejected event, 1 API key, 0 alerts.\n' });
    expect(run.stderr).toContain(`Account ${accountId} has 2 stored events, 1 rejected event, 1 API key, 0 alerts.`);
    expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 0 });
    expect(await rejections(accountId)).toBe(0);
    expect(await product.keys.authenticate(key, new Date())).toBeUndefined();

    expect(await stored(product.warehouse, `${accountId}-2`)).toMatchObject({ events: 2 });
    expect(await rejections(`${accountId}-2`)).toBe(1);
    expect(await product.keys.authenticate(otherKey, new Date())).toBeDefined();
  });

  it('again finds nothing, and an event that comes afterwards counts, also one that was erased', async () => {
    expect(await erase(['--confirm', accountId])).toMatchObject({ code: 0 });
    const again = await erase(['--confirm', accountId, '--json']);
    expect(again).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(`nothing of an account ${accountId} was found`),
    });
    expect(JSON.parse(again.stdout)).toEqual({
      account: accountId,
      usageEventRows: 0,
      rejectedEventRows: 0,
      apiKeys: 0,
      alerts: 0,
    });
    await product.send(usageEvent(1, { accountId }), usageEvent(4, { accountId }));
    expect(await stored(product.warehouse, accountId)).toEqual({ events: 2, usage: 2 });
  });

  it('says so when rows have been stored meanwhile, and erases them when it runs again', async () => {
    const answer = async () => {
      const late = usageEvent(5, { accountId, timestamp: '2026-04-01T00:00:00Z' });
      await product.send(late);
      return `${accountId}\n`;
    };
    expect(await erase([], { stdin: { at: 'Type the name', answer } })).toMatchObject({
      code: 1,
      stdout: 'Erased 2 stored events, 1 rejected event, 1 API key, 0 alerts.\n',
      stderr: expect.stringContaining(`rows of ${accountId} were stored meanwhile, 1 so far; stop its producers`),
    });
    expect(await erase(['--confirm', accountId])).toMatchObject({ code: 0 });
    expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 0 });
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
    expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 2 });
    expect(await product.keys.authenticate(key, new Date())).toBeDefined();
  });

  it('does not take another account for a confirmation', async () => {
    expect(await erase(['--confirm', `${accountId}-2`])).toMatchObject({ code: 2, stdout: '' });
    expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 2 });
  });
});
