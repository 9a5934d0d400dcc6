import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureOf } from '../../../../test/harness/failure.js';
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/harness/stack.js';
import { isContentError } from './errors.js';

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await execute(
    database.warehouse,
    `CREATE TABLE constrained (x UInt8, d Decimal(38, 9), CONSTRAINT small CHECK x < 10)
     ENGINE = MergeTree ORDER BY x`,
  );
});
afterAll(() => database.drop());

describe('an error', () => {
  it.each([
    ['a violated constraint', 'INSERT INTO constrained VALUES (1, 1), (10, 1)', '469', true],
    ['a decimal of too many digits', 'INSERT INTO constrained VALUES (1, toDecimal128(1e30, 9))', '407', true],
    ['an unknown table', 'INSERT INTO no_such_table VALUES (1)', '60', false],
    [
      'a limit of the server',
      'INSERT INTO constrained SELECT number % 10, number FROM numbers(1e6) SETTINGS max_memory_usage = 1000',
      '241',
      false,
    ],
  ])('of the rows themselves or one that may pass: %s', async (_, query, code, isOfContent) => {
    const error = await failureOf(execute(database.warehouse, query));
    expect(error).toMatchObject({ code });
    expect(isContentError(error)).toBe(isOfContent);
  });

  it.each([[new Error('469')], ['469'], [undefined], [{ code: '469' }]])(
    'that ClickHouse did not respond with is none of the rows: %p',
    (error) => {
      expect(isContentError(error)).toBe(false);
    },
  );
});
