import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { failureOf } from '../../../../test/failure.js';
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/stack.js';
import { createWarehouse } from './connection.js';
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

function insert(table: string, values: string): Promise<unknown> {
  return execute(database.warehouse, `INSERT INTO ${table} VALUES ${values}`);
}

describe('an error of the rows themselves', () => {
  it('is a violated constraint', async () => {
    const error = await failureOf(insert('constrained', '(1, 1), (10, 1)'));
    expect(error).toMatchObject({ code: '469' });
    expect(isContentError(error)).toBe(true);
  });

  it('is a decimal of too many digits', async () => {
    const error = await failureOf(insert('constrained', '(1, toDecimal128(1e30, 9))'));
    expect(error).toMatchObject({ code: '407' });
    expect(isContentError(error)).toBe(true);
  });
});

describe('an error that may pass', () => {
  it('is an unknown table', async () => {
    const error = await failureOf(insert('no_such_table', '(1)'));
    expect(error).toMatchObject({ code: '60' });
    expect(isContentError(error)).toBe(false);
  });

  it('is a server that does not answer', async () => {
    const away = createWarehouse({ ...database.options, url: 'http://127.0.0.1:1' });
    const error = await failureOf(execute(away, 'SELECT 1'));
    await away.close();
    expect(isContentError(error)).toBe(false);
  });

  it('is a limit of the server', async () => {
    const limited = execute(
      database.warehouse,
      'INSERT INTO constrained SELECT number % 10, number FROM numbers(1e6) SETTINGS max_memory_usage = 1000',
    );
    expect(isContentError(await failureOf(limited))).toBe(false);
  });

  it.each([[new Error('469')], ['469'], [undefined], [{ code: '469' }]])('is anything else, such as %p', (error) => {
    expect(isContentError(error)).toBe(false);
  });
});
