/** meterline emit: from files through the collector to jobs in the queue. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type CollectorSite, event, startCollectorSite } from '../harness/collector.js';
import { runCommand } from './run-command.js';

let directory: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'meterline-cli-'));
});

afterAll(async () => {
  await rm(directory, { recursive: true });
});

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

  it('sends nothing with --check', async () => {
    const stdin = `{"a":1}\n${JSON.stringify(lines[0])}`;
    const run = await runCommand(['emit', '-', '--check'], { stdin });
    expect(run).toMatchObject({ code: 5, stdout: '1 valid event.\n' });
    expect(run.stderr).toMatch(/^standard input:1: \w+: .*\nmeterline: 1 line rejected\n$/);
    const { code, stdout } = await runCommand(['emit', '-', '--check', '--json'], { stdin: file });
    expect([code, JSON.parse(stdout)]).toMatchObject([0, { validEvents: 5, badLines: 0 }]);
  });

  it('says so when there is no such file', async () => {
    const args = ['emit', join(directory, 'none'), '--check'];
    expect(await runCommand(args)).toEqual({
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
    env = { COLLECTOR_URL: `${site.service.url}/v0/`, METERLINE_EMITTER_KEY: key };
  });
  afterAll(() => site.close());

  const events = [event(), event({ eventId: 'order 1' }), event({ usage: -1 }), event({ accountId: 'another' })];
  const text = (own: readonly object[]) => own.map((one) => JSON.stringify(one)).join('\n');
  const emit = (args: readonly string[], stdin: string, change = {}) =>
    runCommand(['emit', '-', ...args], { env: { ...env, ...change }, stdin });

  it('sends what is in the file, and names the lines that it refuses', async () => {
    const stdin = `nope\n${text(events.slice(0, 3))}\n${text([event()])}`;
    const run = await emit(['--account', account, '--batch', '2'], stdin);
    expect(run).toMatchObject({ code: 5, stdout: 'Sent 3 events in 2 jobs, up to line 5.\n' });
    expect(run.stderr).toMatch(
      /^standard input:1: not JSON: .*\nstandard input:4: invalid_usage: .*\nmeterline: 2 lines rejected by the collector\n$/,
    );
    expect((await site.takeJobs()).flat()).toHaveLength(3);
  });

  it('keeps nothing with --dry-run, which asks the collector', async () => {
    const run = await emit(['--account', account, '--dry-run', '--json'], text(events.slice(0, 3)));
    expect([run.code, JSON.parse(run.stdout)]).toMatchObject([5, { validEvents: 2, badLines: 1 }]);
    expect(await site.takeJobs()).toEqual([]);
  });

  it('is told by a flag, too', async () => {
    const { COLLECTOR_URL: url = '', ...rest } = env;
    const args = ['emit', '-', '--url', url, '--account', account];
    expect(await runCommand(args, { env: rest, stdin: text([event()]) })).toMatchObject({ code: 0 });
    expect(await site.takeJobs()).toHaveLength(1);
  });

  it('says what is wrong with an account, a key and an address', async () => {
    const refused = await emit([], text([event()]));
    expect(refused).toMatchObject({ code: 5, stderr: expect.stringContaining('standard input:1: invalid_account_id') });
    const foreign = await emit([], text([events[3] ?? {}]));
    expect(foreign).toMatchObject({ code: 3, stderr: expect.stringContaining('Access denied') });
    const keyless = await emit([], text([event()]), { METERLINE_EMITTER_KEY: '' });
    expect(keyless).toMatchObject({ code: 2, stderr: expect.stringContaining('set METERLINE_EMITTER_KEY') });
    const redis = await emit(['--url', 'redis://127.0.0.1'], '');
    expect(redis).toMatchObject({ code: 2, stderr: expect.stringContaining('must be a URL such as https://') });
    const away = await emit(['--account', account, '--url', 'http://127.0.0.1:2'], text([event()]));
    expect(away).toMatchObject({
      code: 4,
      stderr: expect.stringMatching(/cannot reach the collector at http:.*ECONNREFUSED/),
    });
  });
});
