import { afterAll, beforeAll } from '@jest/globals';
import { createTestDatabase, type TestDatabase } from './stack.js';

/** A database of the test file's own: it is there when the file's own `beforeAll` runs, and gone after its last test. */
export function testDatabase(): Omit<TestDatabase, 'drop'> {
  const created: TestDatabase[] = [];
  beforeAll(async () => {
    created.push(await createTestDatabase());
  });
  afterAll(async () => {
    for (const database of created) await database.drop();
  });
  const database = () => {
    const [only] = created;
    if (!only) throw new Error('the database is created when the first test of the file begins');
    return only;
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
