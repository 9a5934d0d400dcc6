import { describe, expect, it } from '@jest/globals';
import { ApiSettings } from './api-settings.js';
import type { ConfigFile, LocalStackFile } from './saved-files.js';
import { placeText, readEnvironment } from './settings.js';

const STACK: LocalStackFile = {
  path: '/project/.meterline/local.json',
  addresses: {
    apiUrl: 'http://127.0.0.1:8080',
    redisUrl: 'redis://127.0.0.1:2',
    clickhouseUrl: 'http://127.0.0.1:3',
    clickhouseUser: 'meterline',
    clickhousePassword: 'of the stack',
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
  it('is that of the flag, the variable, the login, the local stack, or the default, in this order', async () => {
    const variables = { METERLINE_API_URL: 'https://variable.example.com/' };
    const everything = { variables, stack: STACK, config: CONFIG };
    const chosen = async (found: Found, apiUrl?: string) =>
      placeText((await settings(found).access(apiUrl ? { apiUrl } : {})).url);
    expect(await chosen(everything, 'https://flag.example.com/v0')).toBe('https://flag.example.com (flag: --api-url)');
    expect(await chosen(everything)).toBe('https://variable.example.com (environment: METERLINE_API_URL)');
    expect(await chosen({ stack: STACK, config: CONFIG })).toBe(
      'https://billing.example.com (login file: /home/me/.config/meterline/config.json)',
    );
    expect(await chosen({ stack: STACK })).toBe('http://127.0.0.1:8080 (local stack: /project/.meterline/local.json)');
    expect(await chosen({})).toBe('http://127.0.0.1:8080 (default)');
  });

  it.each(['billing', 'ftp://x', 'https://user:pass@x', 'https://x/?a=1'])('cannot be %s', async (apiUrl) => {
    await expect(settings({}).access({ apiUrl })).rejects.toMatchObject({ exitCode: 2 });
  });
});

describe('the key and the account', () => {
  it('come with the address that they stand beside', async () => {
    const both = settings({ stack: STACK, config: CONFIG });
    expect(await both.access({})).toMatchObject({ key: { value: 'kept-key' }, account: { value: 'acme' } });
    expect(await both.access({ apiUrl: 'http://127.0.0.1:8080/v0/' })).toMatchObject({
      key: { value: 'stack-key', source: STACK.path },
      account: { value: 'demo', source: STACK.path },
    });
  });

  it('of a login with the local stack are those of the login', async () => {
    const login = { ...CONFIG.login, apiUrl: 'http://127.0.0.1:8080' };
    const both = settings({ stack: STACK, config: { ...CONFIG, login } });
    expect(await both.access({ apiUrl: 'http://127.0.0.1:8080' })).toMatchObject({ key: { value: 'kept-key' } });
    expect(await both.unusedStack(await both.access({}))).toBeUndefined();
  });

  it('says which local stack is not asked', async () => {
    const both = settings({ stack: STACK, config: CONFIG });
    expect(await both.unusedStack(await both.access({}))).toEqual({
      value: 'http://127.0.0.1:8080',
      kind: 'local stack',
      source: STACK.path,
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
      key: { value: 'variable-key', kind: 'environment', source: 'METERLINE_API_KEY' },
      account: { value: 'flag', kind: 'flag', source: '--account' },
    });
    expect((await settings({ variables, stack: STACK }).access({})).account).toEqual({
      value: 'variable',
      kind: 'environment',
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
