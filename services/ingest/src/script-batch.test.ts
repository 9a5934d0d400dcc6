import { afterAll, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import type { RedisClient } from '@meterline/access';
import fc from 'fast-check';
import { Redis } from 'ioredis';
import { testRedisUrl, uniquePrefix } from '../../../test/stack.js';
import { QueueConnection } from './queue-connection.js';

/** Says what it was given, counts itself, and fails or gives nothing when it is told to. */
const SCRIPT = `
local rcall = redis.call
local function count(key) return rcall('INCR', key) end
local n = count(KEYS[1])
if ARGV[2] == 'fail' then return redis.error_reply('ERR told to') end
if ARGV[2] == 'raise' then rcall('LPUSH', KEYS[1], 'not a list') end
if ARGV[2] == 'nothing' then return nil end
if ARGV[2] == 'number' then return -3 end
return { n, KEYS[1], KEYS[2], ARGV[1], { ARGV[2], ARGV[3] or 'no third' } }`;

type Run = (args: (string | number | Buffer | undefined)[]) => Promise<unknown>;

let plain: Redis;
let connection: RedisClient;
let commands: number;
beforeAll(() => {
  plain = new Redis(testRedisUrl());
  connection = new QueueConnection({ url: testRedisUrl(), knowsScriptFlags: true, readsUsageJobs: true }).redis;
  for (const redis of [plain, connection]) redis.defineCommand('moveToFinished:1', { numberOfKeys: 2, lua: SCRIPT });
  const send = connection.sendCommand.bind(connection);
  connection.sendCommand = (...args: Parameters<Redis['sendCommand']>) => {
    commands += 1;
    return send(...args);
  };
});
beforeEach(() => {
  commands = 0;
});
afterAll(() => {
  plain.disconnect();
  connection.disconnect();
});

function script(redis: RedisClient): Run {
  const run: unknown = Reflect.get(redis, 'moveToFinished:1');
  if (typeof run !== 'function') throw new Error('the script is not defined');
  return (args) => run.call(redis, args);
}

/** All results, and the messages of errors without the place in the script. */
async function outcomes(calls: readonly Promise<unknown>[]): Promise<unknown[]> {
  const settled = await Promise.allSettled(calls);
  return settled.map((outcome) =>
    outcome.status === 'fulfilled' ? outcome.value : `error ${/told to|WRONGTYPE/.exec(String(outcome.reason))}`,
  );
}

const call = fc.record({
  key: fc.constantFrom('a', 'b', 'c'),
  other: fc.constantFrom('x', 'y'),
  first: fc.oneof(fc.constantFrom<string | number | undefined>('', 7, undefined), fc.string({ unit: 'binary' })),
  second: fc.constantFrom('ok', 'fail', 'raise', 'nothing', 'number'),
  third: fc.constantFrom('z', Buffer.from('ok')),
});

describe('calls that are made together', () => {
  it('give each its own result or error, as if each were made for itself', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(call, { minLength: 1, maxLength: 150 }), async (calls) => {
        const [one, other] = [uniquePrefix(), uniquePrefix()];
        const run = (redis: RedisClient, prefix: string) =>
          calls.map(({ key, other, first, second, third }) =>
            script(redis)([`${prefix}:${key}`, other, first, second, third]),
          );
        const alone = await outcomes(run(plain, one));
        const together = await outcomes(run(connection, other));
        expect(JSON.parse(JSON.stringify(together).replaceAll(other, one))).toEqual(alone);
      }),
      { numRuns: 40 },
    );
  });

  it('are a command for up to 64 of them', async () => {
    const prefix = uniquePrefix();
    const run = script(connection);
    await Promise.all(Array.from({ length: 130 }, (_, n) => run([`${prefix}:a`, 'x', n, 'ok'])));
    expect(commands).toBe(3);
    expect(await plain.get(`${prefix}:a`)).toBe('130');
  });

  it('are a command when they are alike, and commands of their own when they have more arguments than others', async () => {
    const prefix = uniquePrefix();
    const run = script(connection);
    const alike = [0, 1].map(() => run([`${prefix}:a`, 'x', Buffer.from('1'), 'ok']));
    expect(await Promise.all(alike)).toMatchObject([{ 0: 1 }, { 0: 2 }]);
    expect(commands).toBe(1);
    const unlike = [run([`${prefix}:a`, 'x', 1, 'ok']), run([`${prefix}:a`, 'x', 1, 'ok', 'third'])];
    expect(await Promise.all(unlike)).toMatchObject([{ 4: ['ok', 'no third'] }, { 4: ['ok', 'third'] }]);
    expect(commands).toBe(3);
  });

  it('all fail when Redis is away', async () => {
    const away = new QueueConnection({ url: testRedisUrl(), knowsScriptFlags: true, readsUsageJobs: true }).redis;
    away.defineCommand('moveToFinished:1', { numberOfKeys: 2, lua: SCRIPT });
    const run = script(away);
    const calls = [1, 2].map((n) => run(['a', 'x', n, 'ok']));
    away.disconnect();
    const settled = await Promise.allSettled(calls);
    expect(settled.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
  });
});
