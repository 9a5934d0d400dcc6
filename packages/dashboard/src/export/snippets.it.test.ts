import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { ALL_ACCOUNTS } from '@meterline/client';
import {
  cliCommand,
  curlCommand,
  firstEvent,
  keyCommand,
  producerCode,
  type SharedQuery,
  sendCommand,
  typeScriptCode,
} from './snippets.js';

const shared: SharedQuery = {
  origin: 'https://billing.example.com',
  account: "o'hara & söhne",
  query: {
    startTime: '2026-11-01T00:00:00Z',
    endTime: '2026-11-22T06:28:07Z',
    resolution: 'daily',
    groupBy: ['workspace', 'resource_name'],
    resourceName: ["it's $HOME", 'b'],
    withoutResourceUuid: true,
    excludeResourceName: ['!!', "it's $HOME=1"],
    excludeResourceType: 'job',
    excludeWithoutResourceUuid: true,
  },
  previousQuery: undefined,
};
const before = { ...shared.query, startTime: '2026-10-04T00:00:00Z', endTime: '2026-10-25T06:28:07Z' };
const compared: SharedQuery = { ...shared, previousQuery: before };
/** What a shell makes of the command: its words. */
async function words(command: string): Promise<string[]> {
  const script = `curl() { printf '%s\\n' "$@"; }; npx() { shift 2; printf '%s\\n' "$@"; }\n${command}`;
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { METERLINE_API_KEY: 'mlk_1' } });
  return stdout.trimEnd().split('\n');
}

it('the query of a view as a curl command is the same, with the key from the environment', async () => {
  const [, , header, address] = await words(curlCommand(shared));
  expect(header).toBe('Authorization: Bearer mlk_1');
  const url = new URL(address ?? '');
  expect(decodeURIComponent(url.pathname)).toBe("/v0/accounts/o'hara & söhne/metrics");
  expect(url.searchParams.getAll('resourceName')).toEqual(["it's $HOME", 'b']);
  expect(url.searchParams.get('groupBy')).toBe('workspace,resource_name');
  expect(url.searchParams.get('withoutResourceUuid')).toBe('true');
  expect(url.searchParams.getAll('excludeResourceName')).toEqual(['!!', "it's $HOME=1"]);
  expect(url.searchParams.get('excludeWithoutResourceUuid')).toBe('true');
});

it('the query of a view as a command has every filter, whatever is in a name', async () => {
  expect(await words(cliCommand(shared))).toEqual(
    [
      ['metrics', '--api-url', 'https://billing.example.com', '--account', "o'hara & söhne"],
      ['--from', '2026-11-01T00:00:00Z', '--to', '2026-11-22T06:28:07Z', '--resolution', 'daily'],
      ['--filter', "resourceName=it's $HOME", '--filter', 'resourceName=b', '--filter', 'withoutResourceUuid=true'],
      ['--filter', 'resourceName!=!!', '--filter', "resourceName!=it's $HOME=1", '--filter', 'resourceType!=job'],
      ['--filter', 'withoutResourceUuid!=true', '--group-by', 'workspace,resource_name', '--all'],
    ].flat(),
  );
});

it('the query of a view as TypeScript is the query itself', () => {
  const code = typeScriptCode(shared);
  const [, json = ''] = /const queries = (\[.*?\n\]) as const;/s.exec(code) ?? [];
  expect(JSON.parse(json)).toEqual([shared.query]);
  expect(code).toContain('client.metricsPages("o\'hara & söhne", query)');
});

it('the query of a view has what the view is compared with, in each form', async () => {
  const addresses = (await words(curlCommand(compared))).filter((word) => word.startsWith('http'));
  expect(addresses.map((address) => new URL(address).searchParams.get('startTime'))).toEqual([
    '2026-11-01T00:00:00Z',
    '2026-10-04T00:00:00Z',
  ]);
  const requested = (await words(cliCommand(compared))).join(' ');
  expect([...requested.matchAll(/--from (\S+) --to (\S+)/g)].map(([, ...times]) => times)).toEqual([
    [shared.query.startTime, shared.query.endTime],
    [before.startTime, before.endTime],
  ]);
  expect(typeScriptCode(compared)).toContain(before.startTime);
});

it('the query of a view is about all accounts where the view is', async () => {
  const all = { ...shared, account: ALL_ACCOUNTS };
  expect((await words(curlCommand(all)))[3]).toMatch(/^https:\/\/billing\.example\.com\/v0\/metrics\?/);
  expect(await words(cliCommand(all))).toContain('--all-accounts');
  expect(typeScriptCode(all)).toContain('client.metricsPages(ALL_ACCOUNTS, query)');
});

describe('the first event', () => {
  const now = new Date('2026-11-21T16:49:12.345Z');
  const event = firstEvent("o'hara & co", now);

  it('the first event is sent by a command that leaves every name alone', () => {
    const [command, _headers, json, end] = sendCommand(event, 'https://collector.example.com').split('\n');
    expect([command, end]).toEqual([
      'curl -sS "https://collector.example.com/v0/accounts/o%27hara%20%26%20co/events" \\',
      'EVENT',
    ]);
    expect(JSON.parse(json ?? '')).toEqual(event);
    expect(keyCommand("o'hara & co")).toContain("--account 'o'\\''hara & co' ");
  });

  it('the first event is sent to where a variable says, when the page does not know the collector', () => {
    expect(sendCommand(event)).toContain('curl -sS "$COLLECTOR/v0/accounts/');
    expect(producerCode(event)).toContain('url: process.env.COLLECTOR,');
  });
});
