import { afterAll, afterEach, beforeAll, beforeEach } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from './stack.js';

/**
 * A database of the test file's own, or of each of its tests: it is there when the file's own `beforeAll` or `beforeEach` runs, and gone
 * afterwards.
 */
export function testDatabase(of: 'file' | 'each test' = 'file'): Omit<TestDatabase, 'drop'> {
  let current: TestDatabase | undefined;
  const [before, after] = of === 'file' ? [beforeAll, afterAll] : [beforeEach, afterEach];
  before(async () => {
    current = await createTestDatabase();
  });
  after(async () => {
    await current?.drop();
    current = undefined;
  });
  const database = () => {
    if (!current) throw new Error('the database is created when the first test of the file begins');
    return current;
  };
  return {
    get options() {
      return database().options;
    },
    get warehouse() {
      return database().warehouse;
    },
    get shards() {
      return database().shards;
    },
  };
}
