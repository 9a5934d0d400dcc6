import { describe, expect, it } from '@jest/globals';
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/stack.js';
import { migrate } from '../schema/migrator.js';
import { readDatabaseId } from './checks.js';
import { createWarehouse } from './connection.js';

const NOBODY = '00000000-0000-0000-0000-000000000000';

async function idOf({ options }: TestDatabase): Promise<string> {
  const warehouse = createWarehouse(options);
  try {
    return await readDatabaseId(warehouse);
  } finally {
    await warehouse.close();
  }
}

describe('the id of a database', () => {
  it('stays the same, is its own, and is another one once the database was dropped and created again', async () => {
    const [one, other] = [await createTestDatabase(), await createTestDatabase()];
    try {
      const first = await idOf(one);
      expect(first).not.toBe(NOBODY);
      expect(await idOf(one)).toBe(first);
      expect(await idOf(other)).not.toBe(first);
      await execute(one.warehouse, `DROP DATABASE ${one.options.database} SYNC`);
      await migrate(one.options);
      expect(await idOf(one)).not.toBe(first);
    } finally {
      await Promise.all([one.drop(), other.drop()]);
    }
  });
});
