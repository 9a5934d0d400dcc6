import { describe, expect, it } from '@jest/globals';
import { ApiSettings } from './api-settings.js';
import type { ConfigFile, LocalStackFile } from './saved-files.js';
import { readEnvironment } from './settings.js';

const STACK: LocalStackFile = {
  path: '/project/.meterline/local.json',
  addresses: {
    apiUrl: 'http://127.0.0.1:8080',
    redisUrl: 'redis://127.0.0.1:2',
    clickhouseUrl: 'http://127.0.0.1:3',
    clickhouseDatabase: 'local',
    account: 'demo',
    adminKey: 'stack-key',
    memberKey: 'm',
  },
};
const CONFIG: ConfigFile = {
  path: '/home/me/.config/meterline/config.json',
  login: { apiUrl: 'https://billing.example.com', apiKey: 'kept-key', account: 'acme' },
  isOpen: false,
};

interface Found {
  readonly variables?: Record<string, string>;
  readonly stack?: LocalStackFile;
  readonly config?: ConfigFile;
}

function settings({ variables = {}, stack, config }: Found): ApiSettings {
  return new ApiSettings(
    readEnvironment(variables),
    async () => stack,
    async () => config,
  );
}

describe('the API', () => {
  it('is that of the flag, the variable, the local stack, the login, or the default, in this order', async () => {
    const variables = { METERLINE_API_URL: 'https://variable.example.com/' };
    const everything = { variables, stack: STACK, config: CONFIG };
    const chosen = async (found: Found, apiUrl?: string) =>
      (await settings(found).access(apiUrl ? { apiUrl } : {})).url;
    expect(await chosen(everything, 'https://flag.example.com/v0')).toEqual({
      value: 'https://flag.example.com',
      source: '--api-url',
    });
    expect(await chosen(everything)).toEqual({ value: 'https://variable.example.com', source: 'METERLINE_API_URL' });
    expect(await chosen({ stack: STACK, config: CONFIG })).toEqual({
      value: 'http://127.0.0.1:8080',
      source: STACK.path,
    });
    expect(await chosen({ config: CONFIG })).toEqual({ value: 'https://billing.example.com', source: CONFIG.path });
    expect(await chosen({})).toEqual({ value: 'http://127.0.0.1:8080', source: 'the default' });
  });

  it.each(['billing', 'ftp://x', 'https://user:pass@x', 'https://x/?a=1'])('cannot be %s', async (apiUrl) => {
    await expect(settings({}).access({ apiUrl })).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe('the key and the account', () => {
  it('come with the address that they stand beside', async () => {
    const both = settings({ stack: STACK, config: CONFIG });
    expect(await both.access({})).toMatchObject({ key: { value: 'stack-key' }, account: { value: 'demo' } });
    expect(await both.access({ apiUrl: 'https://billing.example.com/v0/' })).toMatchObject({
      key: { value: 'kept-key', source: CONFIG.path },
      account: { value: 'acme', source: CONFIG.path },
    });
  });

  it('never go to another address', async () => {
    const { key, account } = await settings({ stack: STACK, config: CONFIG }).access({
      apiUrl: 'https://evil.example.com',
    });
    expect([key, account]).toEqual([undefined, undefined]);
  });

  it('are first those of flags and variables', async () => {
    const variables = { METERLINE_API_KEY: 'variable-key', METERLINE_ACCOUNT: 'variable' };
    expect(await settings({ variables, stack: STACK }).access({ account: 'flag' })).toMatchObject({
      url: { source: STACK.path },
      key: { value: 'variable-key', source: 'METERLINE_API_KEY' },
      account: { value: 'flag', source: '--account' },
    });
    expect((await settings({ variables, stack: STACK }).access({})).account).toEqual({
      value: 'variable',
      source: 'METERLINE_ACCOUNT',
    });
  });

  it('warns of a file that others can read', async () => {
    const { warnings } = await settings({ config: { ...CONFIG, isOpen: true } }).access({});
    expect(warnings).toEqual([`others can read your key: chmod 600 ${CONFIG.path}`]);
  });

  it('does not look into files when flags and variables say everything', async () => {
    const variables = { METERLINE_API_URL: 'https://x', METERLINE_API_KEY: 'k', METERLINE_ACCOUNT: 'a' };
    const unreadable = async () => {
      throw new Error('read');
    };
    const access = await new ApiSettings(readEnvironment(variables), unreadable, unreadable).access({});
    expect(access.key?.value).toBe('k');
  });
});
