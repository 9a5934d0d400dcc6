import { expect, it } from '@jest/globals';
import { EnvError } from '@meterline/service';
import { maxDataInWork, readEnv } from './env.js';

function faultOf(variables: Record<string, string>): string {
  try {
    readEnv(variables);
  } catch (error) {
    if (error instanceof EnvError) return error.message;
    throw error;
  }
  throw new Error('the environment is accepted');
}

const WRONG: [string, string][] = [
  ['REDIS_URL', 'localhost:6379'],
  ['REDIS_URL', 'http://127.0.0.1:6379'],
  ['CLICKHOUSE_URL', '127.0.0.1'],
  ['CLICKHOUSE_URL', 'redis://127.0.0.1:8123'],
  ['CLICKHOUSE_URL', 'http://127.0.0.1:8123/system'],
  ['CLICKHOUSE_URL', 'http://ann:secret@127.0.0.1:8123'],
  ['CLICKHOUSE_URL', 'http://127.0.0.1:8123?database=x'],
  ['REDIS_URL', 'redis://127.0.0.1:6379/abc'],
  ['STATEMENT_MB', '0'],
  ['STATEMENT_MB', '1000001'],
  ['STATEMENT_MB', '1e3'],
  ['STATEMENT_MB', '0.5'],
  ['STATEMENT_MB', ' '],
  ['ADMIN_PORT', '65536'],
  ['ADMIN_PORT', '0x50'],
  ['LISTEN_HOST', 'localhost'],
  ['LOG_LEVEL', 'loud'],
];

it('the environment of ingest has a default for everything', () => {
  expect(readEnv({})).toEqual({
    REDIS_URL: 'redis://127.0.0.1:6379',
    CLICKHOUSE_URL: 'http://127.0.0.1:8123',
    CLICKHOUSE_USER: 'default',
    CLICKHOUSE_PASSWORD: '',
    CLICKHOUSE_DATABASE: 'meterline',
    QUEUE_PREFIX: 'bull',
    STATEMENT_MB: 8_192,
    METERLINE_CONSTANTS: expect.objectContaining({
      batchRows: 65_000,
      sealDelayMs: 300_000,
      maintenanceEveryMs: 2_000,
    }),
    LOG_LEVEL: 'info',
  });
});

it('the environment of ingest is what is set', () => {
  const set = {
    REDIS_URL: 'rediss://:pw@redis:6380/1',
    ADMIN_PORT: '9000',
    PRICE_BOOK: 'book.json',
  };
  expect(readEnv(set)).toMatchObject({ ...set, ADMIN_PORT: 9_000 });
});

it('the environment of ingest takes an empty variable as one that is not set', () => {
  const names = Object.keys(readEnv({}));
  const empty = Object.fromEntries([...names, 'ADMIN_PORT', 'PRICE_BOOK'].map((name) => [name, '']));
  expect(readEnv(empty)).toEqual(readEnv({}));
});

it.each(WRONG)(
  'the environment of ingest is rejected with %s=%j in a line that names it once and says what is allowed',
  (name, value) => {
    expect(faultOf({ [name]: value })).toMatch(new RegExp(`^${name} must be [^;]+$`));
  },
);

it('the environment of ingest is rejected with a line for every variable that is wrong', () => {
  const fault = faultOf(Object.fromEntries(WRONG));
  const names = fault.split('\n').map((part) => part.split(' ')[0]);
  expect(names.sort()).toEqual([...new Set(WRONG.map(([name]) => name))].sort());
});

it('the data in work always has room for two of the largest jobs', () => {
  const smallBatches = maxDataInWork(1);
  expect(smallBatches).toBeGreaterThanOrEqual(2 * 5_000 * 250);
  expect(maxDataInWork(100_000)).toBeGreaterThan(smallBatches);
});
