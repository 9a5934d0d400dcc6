import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import { cliCommand, curlCommand, type SharedQuestion, typeScriptCode } from './copy-as.js';

const question: SharedQuestion = {
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
};
/** What a shell makes of the command: its words. */
async function words(command: string): Promise<string[]> {
  const script = `curl() { printf '%s\\n' "$@"; }; meterline() { printf '%s\\n' "$@"; }\n${command}`;
  const { stdout } = await promisify(execFile)('bash', ['-c', script], { env: { METERLINE_API_KEY: 'mlk_1' } });
  return stdout.trimEnd().split('\n');
}

describe('the question of a view', () => {
  it('as curl asks the same, with the key from the environment', async () => {
    const [, , header, address] = await words(curlCommand(question));
    expect(header).toBe('Authorization: Bearer mlk_1');
    const url = new URL(address ?? '');
    expect(decodeURIComponent(url.pathname)).toBe("/v0/accounts/o'hara & söhne/metrics");
    expect(url.searchParams.getAll('resourceName')).toEqual(["it's $HOME", 'b']);
    expect(url.searchParams.get('groupBy')).toBe('workspace,resource_name');
    expect(url.searchParams.get('withoutResourceUuid')).toBe('true');
    expect(url.searchParams.getAll('excludeResourceName')).toEqual(['!!', "it's $HOME=1"]);
    expect(url.searchParams.get('excludeWithoutResourceUuid')).toBe('true');
  });

  it('as a command has every filter, whatever is in a name', async () => {
    expect(await words(cliCommand(question))).toEqual(
      [
        ['metrics', '--api-url', 'https://billing.example.com', '--account', "o'hara & söhne"],
        ['--from', '2026-11-01T00:00:00Z', '--to', '2026-11-22T06:28:07Z', '--resolution', 'daily'],
        ['--group-by', 'workspace,resource_name', '--resource-name', "it's $HOME", '--resource-name', 'b'],
        ['--without-resource-uuid', '--filter', 'resourceType!=job'],
        ['--filter', 'resourceName!=!!', '--filter', "resourceName!=it's $HOME=1"],
        ['--filter', 'withoutResourceUuid!=true', '--all'],
      ].flat(),
    );
  });

  it('as TypeScript is the query itself', () => {
    const code = typeScriptCode(question);
    const [, json = ''] = /const query = (\{.*?\n\}) as const;/s.exec(code) ?? [];
    expect(JSON.parse(json)).toEqual(question.query);
    expect(code).toContain('client.metricsPages("o\'hara & söhne", query)');
  });
});
