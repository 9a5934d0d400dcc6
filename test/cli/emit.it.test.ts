/** meterline emit: from files through the collector to jobs in the queue. */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { type CollectorFixture, event, startCollectorFixture } from '../harness/collector.js';
import { runCommand } from './run-command.js';

let fixture: CollectorFixture;
let account: string;
let env: Record<string, string>;
beforeAll(async () => {
  fixture = await startCollectorFixture();
  const { key, ...other } = await fixture.account();
  account = other.account;
  env = { COLLECTOR_URL: `${fixture.service.url}/v0/`, METERLINE_EMITTER_KEY: key };
});
afterAll(() => fixture.close());

const text = (events: readonly object[]) => events.map((one) => JSON.stringify(one)).join('\n');
const EVENTS = text([event(), event({ eventId: 'order 1' }), event({ usage: -1 })]);
const emit = (args: readonly string[], stdin: string) => runCommand(['emit', '-', ...args], { env, stdin });

it('emit sends what is in the file, and names the lines that the collector rejects', async () => {
  const run = await emit(['--account', account, '--batch', '2'], `nope\n${EVENTS}\n${text([event()])}`);
  expect(run).toMatchObject({ code: 5, stdout: 'Sent 3 events in 2 requests, up to line 5.\n' });
  expect(run.stderr).toMatch(
    /^standard input:1: not JSON: .*\nstandard input:4: invalid_usage: .*\nmeterline: 2 lines rejected\n$/,
  );
  expect((await fixture.takeJobs()).flat()).toHaveLength(3);
});

it('emit goes on after a request of which the collector rejects every line', async () => {
  const run = await emit(['--account', account, '--batch', '1'], EVENTS.split('\n').toReversed().join('\n'));
  expect(run).toMatchObject({ code: 5, stdout: 'Sent 2 events in 2 requests, up to line 3.\n' });
  expect(run.stderr).toMatch(/^standard input:1: invalid_usage: .*\nmeterline: 1 line rejected\n$/);
  expect((await fixture.takeJobs()).flat()).toHaveLength(2);
});

it('emit --dry-run asks the collector, which keeps nothing', async () => {
  const run = await emit(['--account', account, '--dry-run', '--json'], EVENTS);
  expect([run.code, JSON.parse(run.stdout)]).toMatchObject([5, { validEvents: 2, badLines: 1 }]);
  expect(await fixture.takeJobs()).toEqual([]);
});

it.each<[string, Record<string, unknown>, number, RegExp]>([
  ['no account', {}, 5, /^standard input:1: invalid_account_id/],
  ['a foreign account', { accountId: 'another' }, 3, /Access denied .*\nThere is no such account, or your key /],
])('emit says what is wrong with %s', async (_what, fields, code, message) => {
  const run = await emit([], text([event(fields)]));
  expect(run).toMatchObject({ code, stderr: expect.stringMatching(message) });
});
