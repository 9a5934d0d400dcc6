import { expect, it } from '@jest/globals';
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';
import { maxDataInWork, readEnv } from './env.js';

it('the environment of ingest is what is set', () => {
  const set = { REDIS_URL: 'rediss://:pw@redis:6380/1', ADMIN_PORT: '9000', PRICE_BOOK: 'book.json' };
  expect(readEnv(set)).toMatchObject({ ...set, ADMIN_PORT: 9_000 });
});

/** In the order of the lines of the error. */
const WRONG = {
  REDIS_URL: 'localhost:6379',
  LISTEN_HOST: 'localhost',
  ADMIN_PORT: '65536',
  LOG_LEVEL: 'loud',
  CLICKHOUSE_URL: '127.0.0.1',
  STATEMENT_MB: '1e3',
};

it('the environment of ingest is rejected with a line for each variable that is wrong', () => {
  const problems = Object.keys(WRONG).map((name) => expect.stringMatching(new RegExp(`^${name} must be [^;\n]+$`)));
  expect(() => readEnv(WRONG)).toThrow(expect.objectContaining({ name: 'EnvError', problems }));
});

it('the data in work always has room for two of the largest jobs', () => {
  expect(maxDataInWork(1)).toBeGreaterThanOrEqual(2 * MAX_EVENTS_PER_JOB * 250);
  expect(maxDataInWork(100_000)).toBeGreaterThan(maxDataInWork(1));
});
