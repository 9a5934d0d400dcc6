import { describe, expect, it } from '@jest/globals';
import { CommandError } from '../command.js';
import type { LocalStackFile } from './saved-files.js';
import { type ClickHouseFlags, displayUrl, type Environment, readEnvironment, Settings } from './settings.js';

const STACK: LocalStackFile = {
  path: '/project/.meterline/local.json',
  addresses: {
    apiUrl: 'http://127.0.0.1:1',
    redisUrl: 'redis://127.0.0.1:2',
    clickhouseUrl: 'http://127.0.0.1:3',
    clickhouseUser: 'meterline',
    clickhousePassword: 'of the stack',
    clickhouseDatabase: 'local',
    account: 'demo',
    adminKey: 'a',
    memberKey: 'm',
  },
};

function settings(variables: Record<string, string>, stack?: LocalStackFile): Settings {
  const environment: Environment = readEnvironment(variables);
  return new Settings(environment, async () => stack);
}

describe('the address of Redis', () => {
  it('is the flag, else the variable, else the local stack, else the default', async () => {
    const flags = { redisUrl: 'redis://flag' };
    const variables = { REDIS_URL: 'redis://variable' };
    expect(await settings(variables, STACK).redisUrl(flags)).toEqual({
      value: 'redis://flag',
      kind: 'flag',
      source: '--redis-url',
    });
    expect(await settings(variables, STACK).redisUrl({})).toEqual({
      value: 'redis://variable',
      kind: 'environment',
      source: 'REDIS_URL',
    });
    expect(await settings({}, STACK).redisUrl({})).toEqual({
      value: 'redis://127.0.0.1:2',
      kind: 'local stack',
      source: STACK.path,
    });
    expect(await settings({}).redisUrl({})).toEqual({
      value: 'redis://127.0.0.1:6379',
      kind: 'default',
      source: 'the default',
    });
  });

  it('is not looked for in a local stack that nobody asked for', async () => {
    const broken = new Settings(readEnvironment({ REDIS_URL: 'redis://variable' }), async () => {
      throw new Error('read');
    });
    expect((await broken.redisUrl({})).value).toBe('redis://variable');
  });

  it('counts an empty variable as not set', async () => {
    expect((await settings({ REDIS_URL: '' }).redisUrl({})).source).toBe('the default');
  });

  it('must be an address of a Redis, and a message about it does not repeat it', async () => {
    const fault = settings({ REDIS_URL: 'http://user:secret@host' }).redisUrl({});
    await expect(fault).rejects.toBeInstanceOf(CommandError);
    await expect(fault).rejects.toMatchObject({
      exitCode: 2,
      message: 'the address from REDIS_URL must be a URL such as redis://127.0.0.1:6379',
    });
  });

  it('is shown without its password', () => {
    expect(displayUrl('redis://user:secret@host:6379')).toBe('redis://user:***@host:6379');
    expect(displayUrl('http://one:8123,http://ann:secret@two:8123/')).toBe('http://one:8123, http://ann:***@two:8123');
  });
});

describe('an address that says too much', () => {
  it('names where it came from, and not its password', async () => {
    const clickhouse = settings({ CLICKHOUSE_URL: 'http://ann:secret@host:8123/system' }).clickhouse({});
    await expect(clickhouse).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^the address from CLICKHOUSE_URL must be .* and nothing more: [^@]*$/),
    });
    const redis = settings({}).redisUrl({ redisUrl: 'redis://127.0.0.1:6379/abc' });
    await expect(redis).rejects.toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/^the address from --redis-url must be .* the number of a database/),
    });
  });
});

describe('the settings of ClickHouse', () => {
  it('come each from its own place', async () => {
    const chosen = await settings({ CLICKHOUSE_URL: 'http://variable:8123', CLICKHOUSE_USER: 'ann' }, STACK).clickhouse(
      {
        clickhousePassword: 'secret',
      },
    );
    expect(chosen).toEqual({
      url: { value: 'http://variable:8123', kind: 'environment', source: 'CLICKHOUSE_URL' },
      user: 'ann',
      password: 'secret',
      database: 'local',
    });
  });

  it('send the password of a local stack to its own server and user alone', async () => {
    const login = async (variables: Record<string, string>, flags: ClickHouseFlags = {}) => {
      const { user, password } = await settings(variables, STACK).clickhouse(flags);
      return [user, password];
    };
    expect(await login({})).toEqual(['meterline', 'of the stack']);
    expect(await login({}, { clickhouseUser: 'ann' })).toEqual(['ann', '']);
    expect(await login({ CLICKHOUSE_URL: 'http://variable:8123' })).toEqual(['default', '']);
    expect(await login({}, { clickhouseUrl: 'http://flag:8123' })).toEqual(['default', '']);
  });
});

describe('the queue prefix', () => {
  it('is the flag, else QUEUE_PREFIX, else that of BullMQ', () => {
    expect(settings({ QUEUE_PREFIX: 'v' }).queuePrefix({ queuePrefix: 'f' })).toBe('f');
    expect(settings({ QUEUE_PREFIX: 'v' }).queuePrefix({})).toBe('v');
    expect(settings({}).queuePrefix({})).toBe('bull');
  });
});
