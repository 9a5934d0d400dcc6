import { chmod, mkdir, mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type ClickHouseFlags, displayUrl, environment, placeText, Settings } from './settings.js';
import { writeLogin } from './settings-files.js';

const LOGIN = { apiUrl: 'https://billing.example.com', apiKey: 'kept-key', account: 'acme' };
const STACK = {
  apiUrl: 'http://127.0.0.1:8080',
  redisUrl: 'redis://127.0.0.1:2',
  clickhouseUrl: 'http://127.0.0.1:3',
  clickhouseUser: 'meterline',
  clickhousePassword: 'of the stack',
  clickhouseDatabase: 'local',
  account: 'demo',
  adminKey: 'stack-key',
  memberKey: 'm',
};

let outside: string;
let root: string;
let stackPath: string;
let loginPath: string;

beforeEach(async () => {
  outside = await mkdtemp(join(tmpdir(), 'meterline-settings-'));
  root = join(outside, 'project');
  await mkdir(join(root, 'packages', 'cli'), { recursive: true });
  await writeFile(join(root, 'package-lock.json'), '{}');
  stackPath = join(root, '.meterline', 'local.json');
  loginPath = join(outside, 'meterline', 'config.json');
});
afterEach(() => rm(outside, { recursive: true }));

function settings(variables: Record<string, string> = {}, directory = root): Settings {
  return new Settings(environment.parse({ XDG_CONFIG_HOME: outside, ...variables }), directory);
}

async function writeStack(content: unknown = STACK, path = stackPath): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
}

describe('the API', () => {
  it('is that of the flag, the variable, the login, the local stack, or the default, in this order', async () => {
    const chosen = async (variables: Record<string, string>, apiUrl?: string) =>
      placeText((await settings(variables).api(apiUrl === undefined ? {} : { apiUrl })).url);
    const variables = { METERLINE_API_URL: 'https://variable.example.com/' };
    expect(await chosen({ METERLINE_API_URL: '' })).toBe('http://127.0.0.1:8080 (default)');
    await writeStack();
    expect(await chosen({})).toBe(`http://127.0.0.1:8080 (local stack: ${stackPath})`);
    await writeLogin(loginPath, LOGIN);
    expect(await chosen({})).toBe(`https://billing.example.com (login file: ${loginPath})`);
    expect(await chosen(variables)).toBe('https://variable.example.com (environment: METERLINE_API_URL)');
    expect(await chosen(variables, 'https://flag.example.com/v0')).toBe('https://flag.example.com (flag: --api-url)');
  });

  it.each(['billing', 'ftp://x', 'https://user:pass@x', 'https://x/?a=1'])('cannot be %s', async (apiUrl) => {
    await expect(settings().api({ apiUrl })).rejects.toMatchObject({ exitCode: 2 });
  });

  it('has the key and the account that stand beside its address, and those go to no other', async () => {
    await writeStack();
    await writeLogin(loginPath, LOGIN);
    expect(await settings().api({})).toMatchObject({ key: { value: 'kept-key' }, account: { value: 'acme' } });
    expect(await settings().api({ apiUrl: 'http://127.0.0.1:8080/v0/' })).toMatchObject({
      key: { value: 'stack-key', source: stackPath },
      account: { value: 'demo', source: stackPath },
    });
    const { key, account } = await settings().api({ apiUrl: 'https://evil.example.com' });
    expect([key, account]).toEqual([undefined, undefined]);
  });

  it('takes the key of a login before that of the local stack that it names', async () => {
    await writeStack();
    await writeLogin(loginPath, { ...LOGIN, apiUrl: STACK.apiUrl });
    expect(await settings().api({ apiUrl: STACK.apiUrl })).toMatchObject({ key: { value: 'kept-key' } });
    expect(await settings().unusedStack(await settings().api({}))).toBeUndefined();
  });

  it('says which local stack is not asked', async () => {
    await writeStack();
    await writeLogin(loginPath, LOGIN);
    const unused = await settings().unusedStack(await settings().api({}));
    expect(unused).toEqual({ value: STACK.apiUrl, kind: 'local stack', source: stackPath });
  });

  it('takes key and account of flags and variables first', async () => {
    await writeStack();
    const named = settings({ METERLINE_API_KEY: 'variable-key', METERLINE_ACCOUNT: 'variable' });
    expect(await named.api({ account: 'flag' })).toMatchObject({
      url: { source: stackPath },
      key: { value: 'variable-key', kind: 'environment', source: 'METERLINE_API_KEY' },
      account: { value: 'flag', kind: 'flag', source: '--account' },
    });
    expect((await named.api({})).account).toMatchObject({ value: 'variable', source: 'METERLINE_ACCOUNT' });
  });

  it('looks into no file when flags and variables say everything', async () => {
    await writeStack('{');
    const all = { METERLINE_API_URL: 'https://x', METERLINE_API_KEY: 'k', METERLINE_ACCOUNT: 'a' };
    expect((await settings(all).api({})).key?.value).toBe('k');
    expect((await settings({ REDIS_URL: 'redis://variable' }).redisUrl({})).value).toBe('redis://variable');
  });
});

describe('the collector', () => {
  it('is shown the key of the local stack if it is its own, and no other key is made up', async () => {
    await writeStack({ ...STACK, collectorUrl: 'http://127.0.0.1:4', emitterKey: 'stack-emitter' });
    expect(await settings().collector(undefined)).toMatchObject({ key: { value: 'stack-emitter' } });
    await expect(settings().collector('http://127.0.0.1:5')).rejects.toMatchObject({ exitCode: 2 });
    const named = settings({ COLLECTOR_URL: 'http://127.0.0.1:5/v0/', METERLINE_EMITTER_KEY: 'k' });
    expect(await named.collector(undefined)).toMatchObject({
      url: { value: 'http://127.0.0.1:5' },
      key: { value: 'k' },
    });
  });
});

describe('Redis', () => {
  it('is that of the flag, else the variable, else the local stack, else the default', async () => {
    const variables = { REDIS_URL: 'redis://variable' };
    const defaulted = { value: 'redis://127.0.0.1:6379', kind: 'default', source: 'the default' };
    expect(await settings().redisUrl({})).toEqual(defaulted);
    await writeStack();
    expect(await settings().redisUrl({})).toEqual({ value: STACK.redisUrl, kind: 'local stack', source: stackPath });
    expect(await settings(variables).redisUrl({})).toMatchObject({ kind: 'environment', source: 'REDIS_URL' });
    expect(await settings(variables).redisUrl({ redisUrl: 'redis://flag' })).toMatchObject({ source: '--redis-url' });
    expect(settings({ QUEUE_PREFIX: 'v' }).queuePrefix({ queuePrefix: 'f' })).toBe('f');
    expect([settings({ QUEUE_PREFIX: 'v' }), settings()].map((each) => each.queuePrefix({}))).toEqual(['v', 'bull']);
  });

  it.each([
    [{ REDIS_URL: 'http://user:secret@host' }, {}, /^the address from REDIS_URL must be a URL such as redis:[^@]*$/],
    [{}, { redisUrl: 'redis://127.0.0.1:6379/abc' }, /^the address from --redis-url must .* the number of a database/],
  ])('is refused with %j and %j, without its password', async (variables, flags, message) => {
    const found = settings(variables as Record<string, string>).redisUrl(flags);
    await expect(found).rejects.toMatchObject({ exitCode: 2, message: expect.stringMatching(message) });
  });

  it('and ClickHouse are shown without their passwords', () => {
    expect(displayUrl('redis://user:secret@host:6379')).toBe('redis://user:***@host:6379');
    expect(displayUrl('http://one:8123,http://ann:secret@two:8123/')).toBe('http://one:8123,http://ann:***@two:8123');
  });
});

describe('ClickHouse', () => {
  it('has each setting from its own place', async () => {
    await writeStack();
    const named = settings({ CLICKHOUSE_URL: 'http://variable:8123', CLICKHOUSE_USER: 'ann' });
    expect(await named.clickhouse({ clickhousePassword: 'secret' })).toEqual({
      url: { value: 'http://variable:8123', kind: 'environment', source: 'CLICKHOUSE_URL' },
      user: 'ann',
      password: 'secret',
      database: 'meterline',
    });
  });

  it('gets the password of a local stack if it is its own server and user', async () => {
    await writeStack();
    const login = async (variables: Record<string, string>, flags: ClickHouseFlags = {}) => {
      const { user, password, database } = await settings(variables).clickhouse(flags);
      return [user, password, database];
    };
    expect(await login({})).toEqual(['meterline', 'of the stack', 'local']);
    expect(await login({}, { clickhouseUser: 'ann' })).toEqual(['ann', '', 'local']);
    expect(await login({ CLICKHOUSE_URL: 'http://variable:8123' })).toEqual(['default', '', 'meterline']);
    expect(await login({}, { clickhouseUrl: 'http://flag:8123' })).toEqual(['default', '', 'meterline']);
  });

  it('is refused with an address that says too much, without its password', async () => {
    const found = settings({ CLICKHOUSE_URL: 'http://ann:secret@host:8123/system' }).clickhouse({});
    const message = expect.stringMatching(/^the address from CLICKHOUSE_URL must be .* and nothing more: [^@]*$/);
    await expect(found).rejects.toMatchObject({ exitCode: 2, message });
  });
});

describe('the file of a login', () => {
  it('can be read by its owner alone, and nothing else stays behind', async () => {
    await writeLogin(loginPath, { ...LOGIN, account: 'before' });
    await writeLogin(loginPath, LOGIN);
    expect((await stat(loginPath)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(loginPath))).mode & 0o777).toBe(0o700);
    expect(await readdir(dirname(loginPath))).toEqual(['config.json']);
    expect(await settings().api({})).toMatchObject({ key: { value: 'kept-key' }, warning: undefined });
    await chmod(loginPath, 0o640);
    expect((await settings().api({})).warning).toBe(`others can read your key: chmod 600 ${loginPath}`);
  });

  it.each(['', '{"apiUrl', '{"apiUrl":"x","apiKey":"k"}', '{"apiUrl":"https://x","apiKey":""}'])(
    'is refused when it holds %j',
    async (text) => {
      await writeStack(text, loginPath);
      const message = expect.stringContaining(loginPath);
      await expect(settings().api({})).rejects.toMatchObject({ exitCode: 2, message });
    },
  );

  it.each([
    [{ XDG_CONFIG_HOME: '/x', HOME: '/h' }, '/x/meterline/config.json'],
    [{ XDG_CONFIG_HOME: '', HOME: '/h' }, '/h/.config/meterline/config.json'],
  ])('with %j is %s', (variables, expected) => {
    expect(settings(variables).loginPath).toBe(expected);
  });
});

describe('the file of a running local stack', () => {
  it('is found from below, up to the root of the project and not above it', async () => {
    await writeStack(STACK, join(outside, '.meterline', 'local.json'));
    const below = join(root, 'packages', 'cli');
    expect((await settings({}, below).redisUrl({})).kind).toBe('default');
    await writeStack();
    expect((await settings({}, below).redisUrl({})).source).toBe(stackPath);
  });

  it('is looked for only in METERLINE_DATA_DIR when that is set', async () => {
    await writeStack();
    const path = join(root, 'elsewhere', 'local.json');
    await writeStack(STACK, path);
    expect((await settings({ METERLINE_DATA_DIR: 'elsewhere' }).redisUrl({})).source).toBe(path);
    expect((await settings({ METERLINE_DATA_DIR: 'nowhere' }).redisUrl({})).kind).toBe('default');
  });

  it('is refused with every fault, each with its place', async () => {
    const faulty = { ...STACK, redisUrl: 'nowhere', clickhouseUser: '', clickhousePassword: null, emitterKey: [] };
    const text = 'Invalid input: expected string, received';
    const message =
      `${stackPath} is not what npm start writes (account: ${text} undefined; redisUrl: Invalid URL; emitterKey: ${text} array; ` +
      `clickhouseUser: Too small: expected string to have >=1 characters; clickhousePassword: ${text} null)`;
    await writeStack({ ...faulty, account: undefined });
    await expect(settings().redisUrl({})).rejects.toMatchObject({ message: expect.stringContaining(message) });
    await writeStack('{"apiUrl');
    await expect(settings().redisUrl({})).rejects.toMatchObject({ exitCode: 2 });
  });
});
