/** meterline rejected: from a rejection to an event that counts, or to none. */
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { MAX_JOB_BYTES } from '@meterline/catalog';
import { formatRejectionId } from '@meterline/cli/operations/rejections';
import { readOpenRejections } from '@meterline/warehouse';
import { usageEvent } from '../harness/events.js';
import { type Product, startProduct } from '../harness/product.js';
import { drained, enqueueData, enqueueRaw, rejectedRows, stored } from '../harness/queue.js';
import { uniquePrefix } from '../harness/stack.js';
import type { MeterlineOptions } from './run-command.js';
import { runCommand } from './run-command.js';

const DEEP = `${'['.repeat(50_000)}${']'.repeat(50_000)}`;

let product: Product;
beforeAll(async () => {
  product = await startProduct();
  await product.startIngest();
});
afterAll(() => product.close());

let accountId: string;
beforeEach(() => {
  accountId = uniquePrefix();
});

const event = (n: number, changes: object = {}) => ({ ...usageEvent(n, { accountId }), ...changes });

function rejected(args: readonly string[], options: MeterlineOptions = {}) {
  return runCommand(['rejected', ...args], { ...options, env: { ...product.env, ...options.env } });
}

/** The ids of the account's open rejections, as `list` shows them and in its order. */
async function ids(): Promise<string[]> {
  const open = await readOpenRejections(product.warehouse, { accountId }, { limit: 1_000 });
  return open.map(formatRejectionId);
}

async function listed(...args: string[]): Promise<{ id: string; jobId: string; reason: string }[]> {
  const { stdout } = await rejected(['list', ...args, '--json']);
  return JSON.parse(stdout);
}

/** From a producer whose clock is an hour ahead. */
async function rejectAhead(...events: readonly object[]): Promise<void> {
  await enqueueData(product.queue, { events }, { timestamp: Date.now() + 3_600_000 });
  await drained(product.queue);
}

it('list shows rejections as a table, the newest first, with nothing in it that a terminal would obey', async () => {
  await product.send(event(1, { usage: -1 }), event(2, { 'a\u001b[2J\u009b': 1 }));
  const { stdout } = await rejected(['list', '--account', accountId]);
  const [heading, ...rows] = stdout.trimEnd().split('\n');
  expect(heading).toMatch(/^RECEIVED +ID +ACCOUNT +REASON +MESSAGE$/);
  const [second, first] = await ids();
  expect(rows).toEqual([
    expect.stringMatching(new RegExp(`^\\S+Z  ${second} +${accountId} +unknown_field +unknown field "a`)),
    expect.stringMatching(new RegExp(`^\\S+Z  ${first} +${accountId} +invalid_usage +usage must be`)),
  ]);
  expect(stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u);
});

it('list has those that fit a filter, and says when there are more', async () => {
  await product.send(event(1, { usage: -1 }), event(2, { void: 'no' }), event(3, { usage: 'x' }));
  const all = ['--account', accountId];
  expect(await listed(...all, '--reason', 'invalid_void')).toMatchObject([{ position: 1, reason: 'invalid_void' }]);
  for (const span of ['5m', '12w']) expect(await listed(...all, '--since', span)).toHaveLength(3);
  expect(await listed(...all, '--from', '2100-01-01T00:00:00Z')).toEqual([]);
  expect(await listed(...all, '--to', '2000-01-01T00:00:00Z')).toEqual([]);
  const limited = await rejected(['list', '--account', accountId, '--limit', '2', '--json']);
  expect(JSON.parse(limited.stdout)).toHaveLength(2);
  expect(limited.stderr).toContain('There are more; raise --limit (2)');
  expect(await rejected(['list', '--account', 'nobody'])).toMatchObject({ code: 0, stdout: 'No rejections.\n' });
});

it('show has the message and the payload, or the payload alone as it is', async () => {
  const bad = event(1, { usage: -1 });
  const job = await product.send(bad);
  const [id = ''] = await ids();
  const { stdout } = await rejected(['show', id]);
  expect(stdout).toContain(`job       ${job}, position 0\naccount   ${accountId}\nreason    invalid_usage\n`);
  expect(stdout).toContain(JSON.stringify(bad, null, 2));
  expect(await rejected(['show', id, '--payload'])).toMatchObject({ stdout: `${JSON.stringify(bad)}\n` });
});

it('show has all data of a job that is larger than any may be, which replay leaves and discard deletes', async () => {
  const data = `{"events":["€${'x'.repeat(MAX_JOB_BYTES)}"]}`;
  const jobId = await enqueueRaw(product, { data });
  await drained(product.queue);
  const open = () => readOpenRejections(product.warehouse, { jobId }, { limit: 2 });
  const [id = '', ...others] = (await open()).map(formatRejectionId);
  expect(others).toEqual([]);
  const { stdout } = await rejected(['show', id, '--payload']);
  expect(stdout === `${data}\n`).toBe(true);
  const stays = {
    code: 1,
    stdout: 'Nothing was sent.\n',
    stderr: expect.stringContaining(`${id} was kept: it is too large`),
  };
  expect(await rejected(['replay', id])).toMatchObject(stays);
  expect(await rejected(['discard', id, '--yes'])).toMatchObject({ code: 0, stdout: 'Discarded 1.\n' });
  expect(await open()).toEqual([]);
  expect(await rejectedRows(product.warehouse, jobId)).toEqual([]);
});

it.each([
  [['show', 'mwq-1'], 'there is no open rejection mwq-1'],
  [['replay', 'a-1', 'a-1', '--edit', 'eventId=x'], 'there is no open rejection a-1'],
])('%j ends with what is not there', async (args, reason) => {
  expect(await rejected(args)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(reason) });
});

it('replay sends an event with its field fixed, which then counts, and is no rejection any more', async () => {
  const job = await product.send(event(1), event(2, { usage: '1 GB-s', extra: 1 }));
  const [id = ''] = await ids();
  const replayed = await rejected(['replay', id, '--edit', 'usage=2.5', '--unset', 'extra', '--json']);
  expect(JSON.parse(replayed.stdout)).toEqual({ replayed: 1, jobIds: [expect.any(String)], kept: [] });
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toEqual({ events: 2, usage: 3.5 });
  expect(await ids()).toEqual([]);
  expect(await rejectedRows(product.warehouse, job)).toEqual([]);
});

it('replay says with --dry-run what would be sent and what the worker would say, and sends nothing', async () => {
  await product.send(event(1, { usage: -1 }), event(2, { usage: -1, void: 1 }));
  const dryRun = ['--edit', 'usage=1', '--dry-run'];
  const preview = await rejected(['replay', '--all', '--account', accountId, ...dryRun, '--json']);
  expect(JSON.parse(preview.stdout)).toMatchObject([
    { outcome: 'still invalid_void: void must be true or false (got 1)' },
    { outcome: 'valid' },
  ]);
  const [, id = ''] = await ids();
  const one = await rejected(['replay', id, ...dryRun]);
  expect(one.stdout).toContain(JSON.stringify(event(1, { usage: '1' })));
  expect(await ids()).toHaveLength(2);
  expect(await stored(product.warehouse, accountId)).toMatchObject({ events: 0 });
});

it('replay says with --dry-run what the worker would say of a whole job', async () => {
  const jobId = await enqueueRaw(product, {
    data: JSON.stringify({ events: [event(1), event(2, { usage: -1 })], extra: 1 }),
  });
  await drained(product.queue);
  const [id = ''] = (await readOpenRejections(product.warehouse, { jobId }, { limit: 1 })).map(formatRejectionId);
  const outcomes = async (...edits: string[]) =>
    JSON.parse((await rejected(['replay', id, '--dry-run', '--json', ...edits])).stdout);
  expect(await outcomes()).toMatchObject([{ outcome: expect.stringContaining('still job_invalid: ') }]);
  expect(await outcomes('--unset', 'extra')).toMatchObject([
    { outcome: expect.stringMatching(/^1 job of 2 events, 1 valid; still invalid_usage: /) },
  ]);
  await rejected(['discard', id, '--yes']);
});

it('replay sends all that a filter selects, many in a job, and leaves the others', async () => {
  const bad = Array.from({ length: 1_200 }, (_, n) => event(n, { region: 'eu' }));
  await product.send(...bad, event(1_200, { usage: -1 }));
  const args = ['--all', '--account', accountId, '--reason', 'unknown_field', '--unset', 'region', '--json'];
  const { stdout } = await rejected(['replay', ...args]);
  const result = JSON.parse(stdout);
  expect(result).toMatchObject({ replayed: 1_200, kept: [] });
  expect(result.jobIds).toHaveLength(3);
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toEqual({ events: 1_200, usage: 1_200 });
  expect(await listed('--account', accountId)).toMatchObject([{ reason: 'invalid_usage' }]);
});

it('replay ends although everything is rejected again, as new rejections', async () => {
  await product.send(event(1, { usage: -1 }), event(2, { usage: -1 }));
  const [before = ''] = await ids();
  const { stdout } = await rejected(['replay', '--all', '--account', accountId, '--json']);
  expect(JSON.parse(stdout)).toMatchObject({ replayed: 2 });
  await drained(product.queue);
  expect(await ids()).toHaveLength(2);
  expect(await ids()).not.toContain(before);
  const again = await rejected(['replay', before]);
  expect(again).toMatchObject({ code: 1, stderr: expect.stringContaining('there is no open rejection') });
});

it('replay sends a job whole that was rejected whole', async () => {
  const job = await enqueueData(product.queue, { events: [event(1), event(2)], source: 'x' });
  const large = await enqueueData(product.queue, { events: Array.from({ length: 5_001 }, (_, n) => event(10 + n)) });
  await drained(product.queue);
  const rows = await listed('--since', '1h');
  const idOf = (jobId: string) => rows.find((row) => row.jobId === jobId)?.id ?? '';
  expect(await rejected(['replay', idOf(job), '--unset', 'source'])).toMatchObject({ code: 0 });
  expect(await rejected(['replay', idOf(large), '--json'])).toMatchObject({ code: 0 });
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toEqual({ events: 5_003, usage: 5_003 });
});

it('a job with an event that is nested too deeply is rejected whole, and replay sends the event of a job of its own without the deep field', async () => {
  const deep = (n: number) => `${JSON.stringify(event(n)).slice(0, -1)},"extra":${DEEP}}`;
  const whole = await enqueueRaw(product, { data: `{"events":[${deep(1)},${JSON.stringify(event(2))}]}` });
  const single = await enqueueRaw(product, { data: deep(3) });
  await drained(product.queue);
  const rows = await listed('--since', '1h');
  const idOf = (jobId: string) => rows.find((row) => row.jobId === jobId)?.id ?? '';
  expect(rows.find(({ jobId }) => jobId === whole)).toMatchObject({ reason: 'job_invalid', position: 0 });
  expect(await rejected(['replay', idOf(whole)])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('nested too deeply'),
  });
  expect(await rejected(['replay', idOf(single), '--unset', 'extra'])).toMatchObject({ code: 0 });
  await drained(product.queue);
  expect(await stored(product.warehouse, accountId)).toEqual({ events: 1, usage: 1 });
});

it('discard asks, and deletes only after a typed yes', async () => {
  const job = await product.send(event(1, { usage: -1 }), event(2, { usage: -1 }));
  const args = ['discard', '--all', '--account', accountId];
  for (const stdin of ['', 'no\n', 'y\n']) {
    expect(await rejected(args, { stdin })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('not confirmed'),
    });
  }
  expect(await ids()).toHaveLength(2);
  expect(await rejected(args, { stdin: 'yes\n' })).toMatchObject({
    code: 0,
    stdout: 'Discarded 2.\n',
    stderr: 'Discard 2 rejections permanently? Type yes: Discarding 2 rejections …\n',
  });
  expect(await ids()).toEqual([]);
  expect(await rejectedRows(product.warehouse, job)).toEqual([]);
});

it('discard deletes what a producer whose clock is ahead has sent, but not what --to leaves out', async () => {
  await rejectAhead(event(1, { usage: -1 }));
  const args = ['discard', '--all', '--account', accountId, '--yes'];
  const now = new Date().toISOString();
  expect(await rejected([...args, '--to', now])).toMatchObject({ code: 0, stdout: 'Discarded 0.\n' });
  expect(await rejected(args)).toMatchObject({ code: 0, stdout: 'Discarded 1.\n' });
  expect(await ids()).toEqual([]);
});

it('discard leaves what is rejected while it asks, of a job that was queued before', async () => {
  await product.send(event(1, { usage: -1 }));
  const response = async () => {
    await enqueueData(product.queue, { events: [event(2, { usage: -1 })] }, { timestamp: Date.now() - 3_600_000 });
    await drained(product.queue);
    return 'yes\n';
  };
  const args = ['discard', '--all', '--account', accountId];
  const { stdout } = await rejected(args, { stdin: { at: 'Type yes:', response } });
  expect([stdout, (await ids()).length]).toEqual(['Discarded 1.\n', 1]);
});

it('discard deletes those that are named, and with --dry-run none', async () => {
  await product.send(event(1, { usage: -1 }), event(2, { usage: -1 }));
  const [second = '', first = ''] = await ids();
  expect(await rejected(['discard', first, '--dry-run'])).toMatchObject({
    code: 0,
    stdout: '1 rejection would be discarded. Nothing was deleted.\n',
  });
  expect(await rejected(['discard', first, first, '--yes'])).toMatchObject({ code: 0, stdout: 'Discarded 1.\n' });
  expect(await ids()).toEqual([second]);
});
