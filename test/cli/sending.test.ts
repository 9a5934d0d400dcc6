/** meterline emit and meterline replay: from files to jobs in the queue, straight or through the collector. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { QUEUE_NAME } from '@meterline/catalog';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { type CollectorSite, event, startCollectorSite } from '../collector/fixture.js';
import { testRedisUrl, uniquePrefix } from '../stack.js';
import { runCommand } from './run-command.js';
import { runMeterline } from './run-meterline.js';

const TRACE = ['code', 'conv'].map((name) => `packages/local-stack/trace-slice/azure-llm-2023-${name}.csv`);

let directory: string;
let redis: Redis;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-cli-'));
  redis = new Redis(testRedisUrl(), { maxRetriesPerRequest: null });
});

afterAll(async () => {
  redis.disconnect();
  await rm(directory, { recursive: true });
});

/** The data of every job under the prefix, the oldest first. */
async function jobsOf(prefix: string): Promise<{ events: unknown[] }[]> {
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix });
  const jobs = await queue.getWaiting();
  await queue.obliterate({ force: true });
  await queue.close();
  return jobs.sort((a, b) => Number(a.id) - Number(b.id)).map(({ data }) => data);
}

function queueEnv(): { prefix: string; env: Record<string, string> } {
  const prefix = uniquePrefix();
  return { prefix, env: { REDIS_URL: testRedisUrl(), QUEUE_PREFIX: prefix } };
}

describe('meterline emit', () => {
  const lines = Array.from({ length: 5 }, (_, n) => ({
    eventId: `0190c5e4-7b1a-7def-8abc-00000000000${n}`,
    accountId: 'acme',
    workspace: 'é\u2028',
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_compute_runtime_gbs',
    usage: 0.1 + n,
    timestamp: '2025-10-01T00:00:00.000000001Z',
  }));
  const file = lines.map((line) => JSON.stringify(line)).join('\n');

  it('puts into the queue what is in the file, in jobs of the batch size', async () => {
    const { prefix, env } = queueEnv();
    const path = join(directory, 'events.jsonl');
    await writeFile(path, file);
    const { code, stdout } = await runCommand(['emit', path, '--batch', '2', '--json'], { env });
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      result: { events: 5, jobs: 3, badLines: 0 },
    });
    expect(await jobsOf(prefix)).toEqual([
      { events: lines.slice(0, 2) },
      { events: lines.slice(2, 4) },
      { events: lines.slice(4) },
    ]);
  });

  it('refuses what is no event, sends the rest, and says so in its exit code', async () => {
    const { prefix, env } = queueEnv();
    const [first, second] = lines;
    const bad = JSON.stringify({ ...first, usage: -1 });
    const stdin = `${JSON.stringify(first)}\r\nnope\r\n\r\n${bad}\n${JSON.stringify(second)}`;
    const run = await runCommand(['emit', '-'], { env, stdin });
    expect(run).toMatchObject({ code: 5, stdout: 'Sent 2 events in 1 job, up to line 5.\n' });
    expect(run.stderr).toMatch(
      /^standard input:2: not JSON: .*\nstandard input:4: invalid_usage: .*\nmeterline: 2 lines refused, not sent\n$/,
    );
    expect(await jobsOf(prefix)).toEqual([{ events: [first, second] }]);
  });

  it('sends nothing with --check', async () => {
    const { prefix, env } = queueEnv();
    const stdin = `{"a":1}\n${JSON.stringify(lines[0])}`;
    const run = await runCommand(['emit', '-', '--check'], { env, stdin });
    expect(run).toMatchObject({ code: 5, stdout: '1 valid event.\n' });
    expect(run.stderr).toMatch(/^standard input:1: \w+: .*\nmeterline: 1 line refused\n$/);
    const { code, stdout } = await runCommand(['emit', '-', '--check', '--json'], { env, stdin: file });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { validEvents: 5, badLines: 0 }]);
    expect(await jobsOf(prefix)).toEqual([]);
  });

  it('says so when there is no such file', async () => {
    const { env } = queueEnv();
    expect(await runCommand(['emit', join(directory, 'none')], { env })).toEqual({
      code: 1,
      stdout: '',
      stderr: `meterline: cannot read ${join(directory, 'none')}: there is no such file\n`,
    });
  });
});

describe('meterline emit to a collector', () => {
  let site: CollectorSite;
  let account: string;
  let env: Record<string, string>;
  beforeAll(async () => {
    site = await startCollectorSite();
    const { key, ...other } = await site.account();
    account = other.account;
    env = { METERLINE_COLLECTOR_URL: `${site.service.url}/v0/`, METERLINE_EMITTER_KEY: key };
  });
  afterAll(() => site.stop());

  const events = [event(), event({ eventId: 'order 1' }), event({ usage: -1 }), event({ accountId: 'another' })];
  const text = (own: readonly object[]) => own.map((one) => JSON.stringify(one)).join('\n');
  const emit = (args: readonly string[], stdin: string, change = {}) =>
    runCommand(['emit', '-', ...args], { env: { ...env, ...change }, stdin });

  it('sends what is in the file, and names the lines that it refuses', async () => {
    const stdin = `nope\n${text(events.slice(0, 3))}\n${text([event()])}`;
    const run = await emit(['--account', account, '--batch', '2'], stdin);
    expect(run).toMatchObject({ code: 5, stdout: 'Sent 3 events in 2 jobs, up to line 5.\n' });
    expect(run.stderr).toMatch(
      /^standard input:1: not JSON: .*\nstandard input:4: invalid_usage: .*\nmeterline: 2 lines refused by the collector\n$/,
    );
    expect((await site.takeJobs()).flat()).toHaveLength(3);
  });

  it('keeps nothing with --dry-run, which asks the collector', async () => {
    const run = await emit(['--account', account, '--dry-run', '--json'], text(events.slice(0, 3)));
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([5, { validEvents: 2, badLines: 1 }]);
    expect(await site.takeJobs()).toEqual([]);
    const alone = await runCommand(['emit', '-', '--dry-run'], { env: queueEnv().env });
    expect(alone).toMatchObject({ code: 2, stderr: expect.stringContaining('name it with --url') });
  });

  it('is told by a flag, too, and --redis-url is the queue', async () => {
    const { METERLINE_COLLECTOR_URL: url = '', ...rest } = env;
    const args = ['emit', '-', '--url', url, '--account', account];
    expect(await runCommand(args, { env: rest, stdin: text([event()]) })).toMatchObject({ code: 0 });
    expect(await site.takeJobs()).toHaveLength(1);
    const { prefix, env: queue } = queueEnv();
    const stdin = text([event({ accountId: 'acme' })]);
    await emit(['--redis-url', testRedisUrl()], stdin, queue);
    expect([await jobsOf(prefix), await site.takeJobs()]).toMatchObject([[{ events: [{}] }], []]);
  });

  it('says what is wrong with an account, a key and an address', async () => {
    const refused = await emit([], text([event()]));
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('standard input:1: invalid_account_id') });
    const foreign = await emit([], text([events[3] ?? {}]));
    expect(foreign).toMatchObject({ code: 3, stderr: expect.stringContaining('Access denied') });
    const keyless = await emit([], text([event()]), { METERLINE_EMITTER_KEY: '' });
    expect(keyless).toMatchObject({ code: 2, stderr: expect.stringContaining('set METERLINE_EMITTER_KEY') });
    const redis = await emit(['--url', 'redis://127.0.0.1'], '');
    expect(redis).toMatchObject({ code: 2, stderr: expect.stringContaining('--redis-url') });
    const away = await emit(['--account', account, '--url', 'http://127.0.0.1:9'], text([event()]));
    expect(away).toMatchObject({ code: 4, stderr: expect.stringMatching(/does not answer: .*, after 4 attempts/) });
  });
});

describe('meterline replay', () => {
  it('puts two events per request into the queue, under the account and at the time it is given', async () => {
    const { prefix, env } = queueEnv();
    const args = ['replay', ...TRACE, '--no-wait', '--account', 'acme', '--shift-hours', '24', '--json'];
    const { code, stdout } = await runCommand(args, { env });
    expect({ code, result: JSON.parse(stdout) }).toMatchObject({
      code: 0,
      result: { files: 2, requests: 1_000, events: 2_000, jobs: 4, takenIn: null },
    });
    const jobs = await jobsOf(prefix);
    expect(jobs.map(({ events }) => events.length)).toEqual([500, 500, 500, 500]);
    expect(jobs[0]?.events[0]).toMatchObject({ accountId: 'acme', timestamp: '2023-11-17T18:17:03.9799600Z' });
    expect(new Set(jobs.flatMap(({ events }) => events.map((event) => JSON.stringify(event)))).size).toBe(2_000);
  });

  it('sends nothing of any file when one has a bad line, and names it', async () => {
    const { prefix, env } = queueEnv();
    const bad = join(directory, 'azure-llm-2023-conv.csv');
    await writeFile(bad, 'TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:17:03.9799600,many,10\r\n');
    const run = await runCommand(['replay', TRACE[0] ?? '', bad], { env });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining(`meterline: ${bad}:2: expected a request`) });
    expect(await jobsOf(prefix)).toEqual([]);
  });

  it('gives up, with nothing lost, when no worker stores anything', async () => {
    const { prefix, env } = queueEnv();
    const run = await runCommand(['replay', ...TRACE, '--patience', '1'], { env });
    expect(run).toMatchObject({ code: 1, stderr: expect.stringContaining('4 jobs are still in the queue') });
    expect(await jobsOf(prefix)).toHaveLength(4);
  });

  it('stops at Ctrl-C and says how far it came', async () => {
    const { prefix, env } = queueEnv();
    const run = await runMeterline(['replay', ...TRACE], { env, interruptAt: 'Waiting' });
    expect(run).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('interrupted. 4 jobs are still in the queue'),
    });
    expect(await jobsOf(prefix)).toHaveLength(4);
  });
});
