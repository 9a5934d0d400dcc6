/** Runs the page's commands in a shell where curl and npx print their arguments. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { ALL_ACCOUNTS, type MetricsQuery, metricsPath, queryString } from '@meterline/client';
import { cliCommand, curlCommand, firstEvent, keyCommand, sendCommand } from './snippets.js';

const query: MetricsQuery = {
  ...{ startTime: '2026-11-01T00:00:00Z', endTime: '2026-11-22T06:28:07Z', resolution: 'daily' },
  ...{ groupBy: ['workspace', 'resource_name'], resourceName: ["it's $HOME", '$HOME b'], withoutResourceUuid: true },
  ...{ excludeResourceName: ['!!', "it's $HOME=1"], excludeResourceType: 'job', excludeWithoutResourceUuid: true },
};
const previousQuery = { ...query, startTime: '2026-10-05T00:00:00Z', endTime: '2026-10-26T06:28:07Z' };
const compared = { baseUrl: 'https://billing.example.com', account: "o'hara & söhne", query, previousQuery };
const ofAllAccounts = { ...compared, account: ALL_ACCOUNTS, previousQuery: undefined };

async function argumentsOf(commands: string): Promise<string[]> {
  const script = `exec </dev/null
curl() { printf '%s\\n' "$@"; cat; }
npx() { shift 2; printf '%s\\n' "$@"; }
${commands}`;
  const env = { METERLINE_API_KEY: 'mlk_1', KEY: 'mlk_2', COLLECTOR: 'https://collector.example.com' };
  return (await promisify(execFile)('bash', ['-c', script], { env })).stdout.trimEnd().split('\n');
}

it.each([
  [compared, [query, previousQuery]],
  [ofAllAccounts, [query]],
])('the curl command requests the view and its comparison with the key of the environment', async (shared, queries) => {
  const expected = queries.flatMap((each) => {
    const url = `https://billing.example.com${metricsPath(shared.account)}?${queryString(each)}`;
    return ['-sS', '-H', 'Authorization: Bearer mlk_1', url];
  });
  expect(await argumentsOf(curlCommand(shared))).toEqual(expected);
});

it.each([
  [compared, [query, previousQuery], ['--account', compared.account]],
  [ofAllAccounts, [query], ['--all-accounts']],
])('the meterline command requests the view and its comparison with every filter', async (shared, queries, account) => {
  const expected = queries.flatMap(({ startTime, endTime }) => [
    ...['metrics', '--api-url', 'https://billing.example.com', ...account],
    ...['--from', startTime, '--to', endTime, '--resolution', 'daily'],
    ...[
      '--filter',
      "resourceName=it's $HOME",
      '--filter',
      'resourceName=$HOME b',
      '--filter',
      'withoutResourceUuid=true',
    ],
    ...['--filter', 'resourceName!=!!', '--filter', "resourceName!=it's $HOME=1", '--filter', 'resourceType!=job'],
    ...['--filter', 'withoutResourceUuid!=true', '--group-by', 'workspace,resource_name', '--all'],
  ]);
  expect(await argumentsOf(cliCommand(shared))).toEqual(expected);
});

const between = (startTime: string, endTime: string): MetricsQuery => ({ startTime, endTime, resolution: 'daily' });

it.each([
  [
    'the month to date and the same part of the previous month',
    between('2026-11-01T00:00:00Z', '2026-11-22T06:28:07Z'),
    between('2026-10-01T00:00:00Z', '2026-10-22T06:28:07Z'),
    ['--from', '2026-11-01T00:00:00Z', '--to', '2026-11-22T06:28:07Z', '--compare=months'],
  ],
  [
    'a month and the previous month',
    between('2026-10-01T00:00:00Z', '2026-11-01T00:00:00Z'),
    between('2026-09-01T00:00:00Z', '2026-10-01T00:00:00Z'),
    ['--month', '2026-10', '--compare'],
  ],
  [
    'a week and the previous week',
    between('2026-11-16T00:00:00Z', '2026-11-22T06:28:07Z'),
    between('2026-11-09T00:00:00Z', '2026-11-15T06:28:07Z'),
    ['--from', '2026-11-16T00:00:00Z', '--to', '2026-11-22T06:28:07Z', '--compare'],
  ],
])('one meterline command compares %s', async (_what, window, before, flags) => {
  const shared = { baseUrl: 'https://billing.example.com', account: 'acme', query: window, previousQuery: before };
  const shown = await argumentsOf(cliCommand(shared));
  expect(shown.filter((word) => word === 'metrics')).toHaveLength(1);
  expect(shown).toEqual(expect.arrayContaining(flags));
});

it.each(['https://c.example.com', undefined])(
  'the commands create a key and send the event unchanged to the collector %s',
  async (collector) => {
    const event = firstEvent("o'hara & $HOME", new Date('2026-11-21T16:49:12.345Z'));
    const sent = await argumentsOf(sendCommand(event, collector));
    expect(sent[1]).toBe(`${collector ?? 'https://collector.example.com'}/v0/events`);
    expect(sent).toContain('Authorization: Bearer mlk_2');
    expect(JSON.parse(sent.at(-1) ?? '')).toEqual(event);
    expect(await argumentsOf(keyCommand(event.accountId))).toEqual([
      'keys',
      'create',
      '--account',
      event.accountId,
      '--role',
      'emitter',
    ]);
  },
);
