import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, it } from '@jest/globals';
import { testFolder } from '../../../test/harness/test-folder.js';
import { reportsItsDisk } from './connections/redis-persistence.js';
import { environment } from './setting-sources.js';
import { displayUrl, Settings } from './settings.js';
import { writeLogin } from './settings-files.js';

const LOGIN = { apiUrl: 'https://billing.example.com', apiKey: 'kept-key', account: 'acme' };
const PROFILE = { apiUrl: 'https://staging.example.com', apiKey: 'profile-key', account: 'staging' };
const STACK = {
  apiUrl: 'http://127.0.0.1:8080',
  redisUrl: 'redis://127.0.0.1:2',
  collectorUrl: 'http://127.0.0.1:4',
  emitterKey: 'stack-emitter',
  clickhouseUrl: 'http://127.0.0.1:3',
  clickhouseUser: 'meterline',
  clickhousePassword: 'of the stack',
  clickhouseDatabase: 'local',
  account: 'demo',
  adminKey: 'stack-key',
  memberKey: 'm',
};

const outside = testFolder('each test');
let root: string;
let stackPath: string;
let loginPath: string;

beforeEach(async () => {
  root = outside('project');
  await mkdir(join(root, 'packages', 'cli'), { recursive: true });
  await writeFile(join(root, 'package-lock.json'), '{}');
  stackPath = join(root, '.meterline', 'local.json');
  loginPath = outside('meterline', 'config.json');
});

function settings(variables: Record<string, string> = {}, directory = root): Settings {
  return new Settings(environment.parse({ XDG_CONFIG_HOME: outside(), ...variables }), directory);
}

async function writeStack(content: unknown = STACK, path = stackPath): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
}

const login = () => writeLogin(loginPath, LOGIN);
const FILES = {
  'no file': async () => undefined,
  'a stack': () => writeStack(),
  'both files': () => Promise.all([login(), writeStack()]),
  'a login to it': () => Promise.all([writeLogin(loginPath, { ...LOGIN, apiUrl: STACK.apiUrl }), writeStack()]),
  'a profile': () =>
    Promise.all([login(), writeStack(), writeLogin(outside('meterline', 'profiles', 'p.json'), PROFILE)]),
  'a broken stack': () => writeStack('{'),
};

/** Returns settings with their sources. */
const FOUND = {
  api: async (own: Settings, flags: object) => {
    const { url, key, account } = await own.api(flags);
    return [url, key, account];
  },
  collector: async (own: Settings, flags: { url?: string }) => {
    const { url, key } = await own.collector(flags.url);
    return [url, key];
  },
  redis: async (own: Settings, flags: object) => [await own.redisUrl(flags), own.queuePrefix(flags)],
  clickhouse: async (own: Settings, flags: object) => {
    const { url, user, password, database, cluster = 'one server' } = await own.clickhouse(flags);
    return [url, user, password, database, cluster];
  },
};
async function find(what: keyof typeof FOUND, variables: Record<string, string>, flags: object): Promise<string> {
  const found = await FOUND[what](settings(variables), flags);
  const text = (each: (typeof found)[number]) =>
    typeof each === 'object' && 'value' in each ? `${each.value} (${each.kind})` : each;
  return found.map(text).join(' ').trim();
}

const [REDIS, CLICKHOUSE] = [{ REDIS_URL: 'redis://x', QUEUE_PREFIX: 'v' }, { CLICKHOUSE_URL: 'http://x:8123' }];
const VARIABLE = { METERLINE_API_URL: 'https://x/' };
const KEY = { METERLINE_API_KEY: 'k', METERLINE_ACCOUNT: 'a' };
const OF_PROFILE = `${PROFILE.apiUrl} (login file) profile-key (login file) staging (login file)`;
const OF_STACK = 'stack-key (local stack) demo (local stack)';

it.each<[keyof typeof FOUND, keyof typeof FILES, Record<string, string>, Record<string, string>, string]>([
  ['api', 'no file', { METERLINE_API_URL: '' }, {}, 'http://127.0.0.1:8080 (default)'],
  ['api', 'a stack', {}, {}, `http://127.0.0.1:8080 (local stack) ${OF_STACK}`],
  ['api', 'both files', {}, {}, `${LOGIN.apiUrl} (login file) kept-key (login file) acme (login file)`],
  ['api', 'both files', VARIABLE, {}, 'https://x (environment)'],
  ['api', 'both files', VARIABLE, { apiUrl: 'https://y/v0' }, 'https://y (flag)'],
  ['api', 'both files', {}, { apiUrl: `${STACK.apiUrl}/v0/` }, `http://127.0.0.1:8080 (flag) ${OF_STACK}`],
  ['api', 'a login to it', {}, {}, `${STACK.apiUrl} (login file) kept-key (login file) acme (login file)`],
  ['api', 'a stack', KEY, {}, 'http://127.0.0.1:8080 (local stack) k (environment) a (environment)'],
  ['api', 'a stack', KEY, { account: 'b' }, 'http://127.0.0.1:8080 (local stack) k (environment) b (flag)'],
  ['api', 'a stack', { METERLINE_API_KEY: 'k' }, {}, 'http://127.0.0.1:8080 (local stack) k (environment)'],
  ['api', 'a profile', {}, {}, `${LOGIN.apiUrl} (login file) kept-key (login file) acme (login file)`],
  ['api', 'a profile', { ...VARIABLE, ...KEY, METERLINE_PROFILE: 'q' }, { profile: 'p' }, OF_PROFILE],
  ['api', 'a profile', { METERLINE_PROFILE: 'p' }, {}, OF_PROFILE],
  ['api', 'a profile', { METERLINE_PROFILE: 'p', ...VARIABLE }, {}, 'https://x (environment)'],
  ['api', 'a profile', {}, { profile: 'p', apiUrl: 'https://y' }, 'https://y (flag)'],
  ['api', 'a broken stack', { ...VARIABLE, ...KEY }, {}, 'https://x (environment) k (environment) a (environment)'],
  ['collector', 'a stack', {}, {}, 'http://127.0.0.1:4 (local stack) stack-emitter (local stack)'],
  ['collector', 'a stack', { METERLINE_EMITTER_KEY: 'k' }, { url: 'http://y/v0/' }, 'http://y (flag) k (environment)'],
  ['redis', 'no file', {}, {}, 'redis://127.0.0.1:6379 (default) bull'],
  ['redis', 'a stack', {}, {}, 'redis://127.0.0.1:2 (local stack) bull'],
  ['redis', 'a broken stack', REDIS, {}, 'redis://x (environment) v'],
  ['redis', 'a profile', REDIS, { profile: 'p' }, 'redis://x (environment) v'],
  ['redis', 'a stack', REDIS, { redisUrl: 'redis://y', queuePrefix: 'f' }, 'redis://y (flag) f'],
  ['clickhouse', 'a stack', {}, {}, 'http://127.0.0.1:3 (local stack) meterline of the stack local one server'],
  ['clickhouse', 'a stack', {}, { clickhouseUser: 'ann' }, 'http://127.0.0.1:3 (local stack) ann  local one server'],
  ['clickhouse', 'a stack', CLICKHOUSE, {}, 'http://x:8123 (environment) default  meterline one server'],
  ['clickhouse', 'a stack', {}, { clickhouseUrl: 'http://y' }, 'http://y (flag) default  meterline one server'],
  [
    'clickhouse',
    'no file',
    CLICKHOUSE,
    { clickhousePassword: 'p' },
    'http://x:8123 (environment) default p meterline one server',
  ],
])('the settings of %s with %s, variables %j and flags %j are %s', async (what, files, variables, flags, expected) => {
  await FILES[files]();
  expect(await find(what, variables, flags)).toBe(expected);
});

it.each<[keyof typeof FOUND, Record<string, string>, object, RegExp]>([
  ['api', {}, { profile: '../config' }, /^the profile from --profile must have 1 to 64 letters/],
  [
    'api',
    {},
    { profile: 'q' },
    /^there is no profile q \(from --profile\); create it with "meterline login --profile q"$/,
  ],
  ['api', { METERLINE_PROFILE: 'q' }, {}, /^there is no profile q \(from METERLINE_PROFILE\)/],
  ['api', {}, { apiUrl: 'billing' }, /^the address from --api-url must be a URL such as/],
  ['api', {}, { apiUrl: 'ftp://x' }, /^the address from --api-url must be a URL such as/],
  ['api', {}, { apiUrl: 'https://user:pass@x' }, /must be a URL without user and password, \? and #;[^@]*$/],
  ['api', {}, { apiUrl: 'https://x/?a=1' }, /must be a URL without user and password, \? and #;[^@]*$/],
  ['collector', {}, { url: 'redis://x' }, /^the address from --url must be a URL such as https:/],
  ['collector', {}, { url: 'http://127.0.0.1:5' }, /^there is no key for http:\/\/127.0.0.1:5 \(from --url\); set MET/],
  [
    'redis',
    { REDIS_URL: 'http://u:secret@host' },
    {},
    /^the address from REDIS_URL must be a URL such as redis:[^@]*$/,
  ],
  [
    'redis',
    {},
    { redisUrl: 'redis://127.0.0.1:6379/abc' },
    /^the address from --redis-url must .* number of a database/,
  ],
  [
    'clickhouse',
    { CLICKHOUSE_URL: 'http://ann:secret@host/system' },
    {},
    /^the address from CLICKHOUSE_URL must be [^@]*$/,
  ],
  ['clickhouse', { CLICKHOUSE_URL: 'http://one:8123,http://two:8123' }, {}, /need the name of their cluster/],
  ['clickhouse', { CLICKHOUSE_INSERT_QUORUM: '2' }, {}, /must be a number of replicas and needs CLICKHOUSE_CLUSTER/],
  ['clickhouse', { CLICKHOUSE_INSERT_QUORUM: 'x', CLICKHOUSE_CLUSTER: 'c' }, {}, /must be a number of replicas/],
])('%s with variables %j and flags %j is an error that shows no password', async (what, variables, flags, message) => {
  await writeStack();
  await expect(find(what, variables, flags)).rejects.toMatchObject({
    exitCode: 2,
    message: expect.stringMatching(message),
  });
});

it('a setting has its flag, variable or file as its source, and an unused local stack is reported', async () => {
  await FILES['both files']();
  const { url, key, account } = await settings({ METERLINE_API_KEY: 'k' }).api({ account: 'b' });
  expect([url.source, key?.source, account?.source]).toEqual([loginPath, 'METERLINE_API_KEY', '--account']);
  const unused = { value: STACK.apiUrl, kind: 'local stack', source: stackPath };
  expect(await settings().unusedStack(await settings().api({}))).toEqual(unused);
  expect(await settings().unusedStack(await settings().api({ apiUrl: STACK.apiUrl }))).toBeUndefined();
});

it('addresses of Redis and ClickHouse are shown without their passwords', () => {
  expect(displayUrl('redis://user:secret@host:6379')).toBe('redis://user:***@host:6379');
  expect(displayUrl('http://one:8123,http://ann:secret@two:8123/')).toBe('http://one:8123,http://ann:***@two:8123');
});

it.each([
  ['7.0.15', 1, false],
  ['7.1.9', 1, false],
  ['7.2.0', 1, true],
  ['7.4.1', 0, false],
  ['8.0.0', 1, true],
])('Redis %s with aof_enabled:%d can report writes to its disk: %s', (version, aof, reports) => {
  const server = `# Server\r\nredis_version:${version}\r\nredis_git_sha1:00000000\r\n`;
  const persistence = `# Persistence\r\nloading:0\r\naof_enabled:${aof}\r\naof_rewrite_in_progress:0\r\n`;
  expect(reportsItsDisk(server, persistence)).toBe(reports);
});

describe('the login file', () => {
  it('the login file is readable by its owner only, and no temp file is left', async () => {
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
    'a login file with the content %j is an error',
    async (text) => {
      await writeStack(text, loginPath);
      const message = expect.stringContaining(loginPath);
      await expect(settings().api({})).rejects.toMatchObject({ exitCode: 2, message });
    },
  );

  it.each([
    [{ XDG_CONFIG_HOME: '/x', HOME: '/h' }, '/x/meterline/config.json'],
    [{ XDG_CONFIG_HOME: '', HOME: '/h' }, '/h/.config/meterline/config.json'],
  ])('with %j the login file is %s', (variables, expected) => {
    expect(settings(variables).loginPath({})).toBe(expected);
  });
});

describe('the file of a running local stack', () => {
  it('the file is found from a subfolder, up to the root of the project', async () => {
    await writeStack(STACK, outside('.meterline', 'local.json'));
    const below = join(root, 'packages', 'cli');
    expect((await settings({}, below).redisUrl({})).kind).toBe('default');
    await writeStack();
    expect((await settings({}, below).redisUrl({})).source).toBe(stackPath);
  });

  it('METERLINE_DATA_DIR replaces the search for the file', async () => {
    await writeStack();
    const path = join(root, 'elsewhere', 'local.json');
    await writeStack(STACK, path);
    expect((await settings({ METERLINE_DATA_DIR: 'elsewhere' }).redisUrl({})).source).toBe(path);
    expect((await settings({ METERLINE_DATA_DIR: 'nowhere' }).redisUrl({})).kind).toBe('default');
  });

  it('an invalid file is an error that lists every invalid field', async () => {
    const invalid = { ...STACK, redisUrl: 'nowhere', clickhouseUser: '', clickhousePassword: null, emitterKey: [] };
    const text = 'Invalid input: expected string, received';
    const message =
      `${stackPath} is not a valid local stack file (account: ${text} undefined; redisUrl: Invalid URL; emitterKey: ${text} array; ` +
      `clickhouseUser: Too small: expected string to have >=1 characters; clickhousePassword: ${text} null)`;
    await writeStack({ ...invalid, account: undefined });
    await expect(settings().redisUrl({})).rejects.toMatchObject({ message: expect.stringContaining(message) });
    await writeStack('{"apiUrl');
    await expect(settings().redisUrl({})).rejects.toMatchObject({ exitCode: 2 });
  });
});
