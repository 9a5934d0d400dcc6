/** What the server does with statements that nobody waits for any more, or that take more than they may. */
import { createServer } from 'node:http';
import { afterAll, beforeAll, beforeEach, expect, it } from '@jest/globals';
import { z } from 'zod';
import { failureOf } from '../../../../test/harness/failure.js';
import { listening } from '../../../../test/harness/listening.js';
import { execute, select } from '../../../../test/harness/stack.js';
import { testDatabase } from '../../../../test/harness/test-database.js';
import { until } from '../../../../test/harness/waiting.js';
import { createWarehouse, type Statement, type StatementOutcome, type Warehouse } from './connection.js';

const database = testDatabase();
let outcomes: StatementOutcome[];
let warehouse: Warehouse;
beforeAll(async () => {
  await execute(database.warehouse, 'CREATE TABLE copies (number UInt64) ENGINE = MergeTree ORDER BY number');
  warehouse = createWarehouse({ ...database.options, observe: () => (outcome) => outcomes.push(outcome) });
});
afterAll(() => warehouse.close());
beforeEach(() => {
  outcomes = [];
});

/** Rows slowly enough that no statement ever ends by itself during a test. */
const NEVER_ENDING = 'SELECT number FROM numbers(100000000) WHERE sleepEachRow(0.01) = 0';
const SETTINGS = { function_sleep_max_microseconds_per_block: '1000000000', max_block_size: '10' } as const;
const SELECT = `${NEVER_ENDING} LIMIT 1 OFFSET 99999999`;
const neverEnding = (query = SELECT): Statement => ({ name: 'never', query, settings: SETTINGS });

const untilRunning = (count: number) => until(`${count} statements run`, async () => (await running()) === count);

/** How many statements of this database the server is working on, but for the query itself. */
async function running(): Promise<number> {
  const [row] = await select<{ n: string }>(
    database.warehouse,
    "SELECT count() AS n FROM system.processes WHERE current_database = currentDatabase() AND query LIKE '%sleepEachRow%' AND query NOT LIKE '%system.processes%'",
  );
  return Number(row?.n);
}

/** Starts a statement whose scope is aborted by `leave`. */
function start(query: string, own = warehouse) {
  const abort = new AbortController();
  const scope = own.within({ signal: abort.signal });
  const statement = neverEnding(query);
  const ended = failureOf(query.startsWith('SELECT') ? scope.read(statement, z.unknown()) : scope.run(statement));
  return { ended, leave: () => abort.abort(new Error('the client has gone')) };
}

it.each([SELECT, `INSERT INTO copies ${NEVER_ENDING}`])(
  'a statement whose caller has gone has ended in the server when it fails, and no other has: %s',
  async (query) => {
    const [one, other] = [start(query), start(query)];
    await untilRunning(2);
    one.leave();
    expect(await one.ended).toMatchObject({ message: 'the client has gone' });
    expect([await running(), outcomes]).toEqual([1, ['cancelled']]);
    other.leave();
    await other.ended;
    const third = start(query);
    // At the moment of sending.
    third.leave();
    expect(await third.ended).toMatchObject({ message: 'the client has gone' });
    expect(await running()).toBe(0);
  },
);

it('a statement whose caller has gone loses its connection when the server does not end it', async () => {
  const silent = createServer(() => undefined);
  const own = createWarehouse({ ...database.options, url: await listening(silent) });
  const { ended, leave } = start(SELECT, own);
  leave();
  expect(await ended).toMatchObject({ message: 'the client has gone' });
  await own.close();
  silent.close();
});

it('an aborted scope sends nothing, and a scope that is never aborted has no effect', async () => {
  const aborted = warehouse.within({ signal: AbortSignal.abort(new Error('gone')) });
  expect(await failureOf(select(aborted, 'SELECT 1'))).toMatchObject({ message: 'gone' });
  expect(outcomes).toEqual([]);
  const open = warehouse.within({ signal: new AbortController().signal });
  expect(await select(open, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  expect(outcomes).toEqual(['ok']);
});

it('a scope gives its settings to its statements, and theirs come first', async () => {
  const outer = warehouse.within({ settings: { max_threads: 3, max_block_size: '7' } });
  const inner = outer.within({ settings: { max_threads: 2 } });
  const query = "SELECT toUInt32(getSetting('max_threads')) AS threads, toUInt32(getSetting('max_block_size')) AS rows";
  const read = (settings: NonNullable<Statement['settings']> = {}) =>
    inner.read({ name: 'settings', query, settings }, z.unknown());
  expect(await read()).toEqual([{ threads: 2, rows: 7 }]);
  expect(await read({ max_block_size: '9' })).toEqual([{ threads: 2, rows: 9 }]);
});

it.each([
  ['time', { maxExecutionMs: 1_000 }, neverEnding(), { code: '159', type: 'TIMEOUT_EXCEEDED' }],
  [
    'memory',
    { maxMemoryBytes: 20 * 2 ** 20 },
    { ...neverEnding('SELECT length(groupArray(number)) AS n FROM numbers(10000000)'), settings: {} },
    { code: '241', type: 'MEMORY_LIMIT_EXCEEDED' },
  ],
])('a statement that exceeds its limit of %s is rejected', async (_, limits, statement, error) => {
  const own = createWarehouse({ ...database.options, ...limits });
  expect(await failureOf(own.read(statement, z.unknown()))).toMatchObject(error);
  expect(await running()).toBe(0);
  expect(await select(own, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  await own.close();
});

it('a statement waits for no other one, however many run', async () => {
  const own = createWarehouse(database.options);
  const long = Array.from({ length: 12 }, () => start(SELECT, own));
  await untilRunning(12);
  expect(await select(own, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
  for (const { leave } of long) leave();
  await Promise.all(long.map(({ ended }) => ended));
  await own.close();
});
