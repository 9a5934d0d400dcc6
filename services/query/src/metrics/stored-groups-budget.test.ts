import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTestDatabase, execute, type TestDatabase } from '../../../../test/stack.js';
import { StoredGroupsBudget } from './stored-groups-budget.js';

const MOST = 100;
const MINUTE_MS = 60_000;

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** A budget with a clock that stands until it is set, and one caller of it. */
function budget() {
  let now = 0;
  const caller = randomUUID();
  const { warehouse } = database;
  const groups = new StoredGroupsBudget({ warehouse, maxStoredGroups: MOST, clock: () => new Date(now) });
  return {
    caller,
    passTime: (milliseconds: number) => {
      now += milliseconds;
    },
    /** Reserves up to `wanted` and stores nothing. @returns what may be stored; undefined when it is refused */
    mayStore: async (wanted: number) => {
      let allowed: number | undefined;
      await groups.spend(caller, { least: 1, wanted }, async (most) => {
        allowed = most;
        return { totalGroups: 0 };
      });
      return allowed;
    },
    store: (size: number) =>
      groups.spend(caller, { least: size, wanted: size }, async () => {
        await storedElsewhere(caller, size);
        return { totalGroups: size };
      }),
    fail: (wanted: number) => groups.spend(caller, { least: 1, wanted }, () => Promise.reject(new Error('no answer'))),
  };
}

/** As another process stores. */
async function storedElsewhere(caller: string, groups: number): Promise<void> {
  await execute(
    database.warehouse,
    `
INSERT INTO metrics_results (caller, result_id, account_id, rank) SELECT '${caller}', generateUUIDv4(), 'acme', number
FROM numbers(${groups})`,
  );
}

describe('what a caller may store', () => {
  it('is the rest of the bound, and no more than is wanted', async () => {
    const { store, mayStore } = budget();
    await store(70);
    expect(await mayStore(20)).toBe(20);
    expect(await mayStore(50)).toBe(30);
  });

  it('is nothing where there is no room for the least', async () => {
    const { store } = budget();
    await store(70);
    expect(await store(31)).toBeUndefined();
    expect(await store(30)).toEqual({ totalGroups: 30 });
  });

  it('leaves out what is reserved by questions under way', async () => {
    const { store } = budget();
    const answers = await Promise.all([store(40), store(40), store(40)]);
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(2);
  });

  it('leaves out what a failed store may have stored', async () => {
    const { fail, mayStore } = budget();
    await expect(fail(60)).rejects.toThrow('no answer');
    expect(await mayStore(MOST)).toBe(40);
  });

  it('follows what other processes store within a minute', async () => {
    const { caller, mayStore, passTime } = budget();
    expect(await mayStore(MOST)).toBe(MOST);
    await storedElsewhere(caller, 25);
    passTime(MINUTE_MS + 1);
    expect(await mayStore(MOST)).toBe(75);
  });

  it('is counted again after a failure, too, once a minute has passed', async () => {
    const { fail, mayStore, passTime } = budget();
    await expect(fail(60)).rejects.toThrow('no answer');
    passTime(MINUTE_MS + 1);
    expect(await mayStore(MOST)).toBe(MOST);
  });
});
