/** meterline audit: its flags, output and exit codes. What it finds and repairs: packages/cli/src/operations/audit.it.test.ts. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { insertUsageEvents, sealNext } from '@meterline/warehouse';
import { event } from '../harness/events.js';
import { createTestDatabase, databaseVariables, execute, type TestDatabase, testRedisUrl } from '../harness/stack.js';
import { runCommand } from './run-command.js';

const MIDNIGHT_AFTER = Date.UTC(2025, 9, 3);

let database: TestDatabase;
beforeAll(async () => {
  database = await createTestDatabase();
  await insertUsageEvents(database.warehouse, [
    event({ cost: '2' }),
    event({ at: '2025-10-02T00:00:00Z', resourceUuid: '' }),
    event({ accountId: 'globex', at: '2025-10-02T05:00:00Z' }),
  ]);
  while (await sealNext(database.shards.all, MIDNIGHT_AFTER));
});
afterAll(() => database.drop());

async function audit(...args: readonly string[]) {
  const env = { ...databaseVariables(database.options), REDIS_URL: testRedisUrl() };
  const run = await runCommand(['audit', '--json', ...args], { env });
  return { ...run, result: run.stdout === '' ? undefined : JSON.parse(run.stdout) };
}

describe('meterline audit', () => {
  it('finds nothing where nothing is wrong', async () => {
    const { code, result } = await audit();
    expect(result).toEqual({ days: 2, differences: [] });
    expect(code).toBe(0);
  });

  it('says so to people too', async () => {
    const { stdout } = await runCommand(['audit'], { env: databaseVariables(database.options) });
    expect(stdout).toBe('Compared 2 days. Every rollup row agrees with its events.\n');
  });

  it('looks at one account and window alone when asked to', async () => {
    await execute(
      database.warehouse,
      "ALTER TABLE usage_hourly DELETE WHERE account_id = 'globex' AND toHour(bucket) = 5",
    );
    expect((await audit('--account', 'acme')).code).toBe(0);
    expect((await audit('--to', '2025-10-02T05:00:00Z')).code).toBe(0);
    const { code, result, stderr } = await audit('--from', '2025-10-02T05:00:00Z', '--to', '2025-10-02T06:00:00Z');
    expect(code).toBe(1);
    expect(stderr).toContain('--repair');
    expect(result.differences).toContainEqual({
      grain: 'hourly',
      bucket: '2025-10-02T05:00:00Z',
      account: 'globex',
      part: 'detail',
      truth: { events: 1, usage: '1', cost: '1' },
      rollup: { events: 0, usage: '0', cost: '0' },
    });
    expect(await audit('--repair')).toMatchObject({ code: 0, result: { stillDifferent: [] } });
    expect((await audit()).code).toBe(0);
  });
});
