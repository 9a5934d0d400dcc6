/** What the server does with statements that nobody waits for any more. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { z } from 'zod';
import { failureOf } from '../../../../test/harness/failure.js';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/harness/stack.js';
import { createWarehouse, type Statement, type StatementOutcome, type Warehouse } from './connection.js';

let database: TestDatabase;
let outcomes: StatementOutcome[];
let warehouse: Warehouse;
beforeAll(async () => {
  database = await createTestDatabase();
  await execute(database.warehouse, 'CREATE TABLE copies (number UInt64) ENGINE = MergeTree ORDER BY number');
  warehouse = createWarehouse({ ...database.options, observe: () => (outcome) => outcomes.push(outcome) });
});
afterAll(async () => {
  await warehouse.close();
  await database.drop();
});

/** Rows slowly enough that none of these statements ever ends by itself during a test. */
const NEVER_ENDING = 'SELECT number FROM numbers(100000000) WHERE sleepEachRow(0.01) = 0';
const SETTINGS = {
  function_sleep_max_microseconds_per_block: '1000000000',
  max_block_size: '10',
} as const;
const STATEMENTS = {
  'a SELECT': `${NEVER_ENDING} LIMIT 1 OFFSET 99999999`,
  'an INSERT … SELECT': `INSERT INTO copies ${NEVER_ENDING}`,
} as const;

/** How many statements of this database the server is working on, but for the question itself. */
async function running(): Promise<number> {
  const [row] = await select<{ n: string }>(
    database.warehouse,
    "SELECT count() AS n FROM system.processes WHERE current_database = currentDatabase() AND query LIKE '%sleepEachRow%' AND query NOT LIKE '%system.processes%'",
  );
  return Number(row?.n);
}

async function untilRunning(count: number): Promise<void> {
  while ((await running()) !== count) await delay(20);
}

/** Starts a statement whose scope is aborted with `reason` by the function returned. */
function start(query: string) {
  const abort = new AbortController();
  const scope = warehouse.within({ signal: abort.signal });
  const statement = { name: 'never_ending', query, query_params: {}, settings: SETTINGS };
  const ended = failureOf(query.startsWith('SELECT') ? scope.read(statement, z.unknown()) : scope.run(statement));
  return { ended, leave: () => abort.abort(new Error('the client has gone')) };
}

describe.each(Object.entries(STATEMENTS))('%s whose caller has gone', (_, query) => {
  it('has ended in the server when it fails', async () => {
    outcomes = [];
    const { ended, leave } = start(query);
    await untilRunning(1);
    leave();
    expect(await ended).toMatchObject({ message: 'the client has gone' });
    expect(await running()).toBe(0);
    expect(outcomes).toEqual(['cancelled']);
  });

  it('ends also when the caller goes at the moment of sending', async () => {
    outcomes = [];
    const { ended, leave } = start(query);
    leave();
    expect(await ended).toMatchObject({ message: 'the client has gone' });
    expect(await running()).toBe(0);
  });

  it('leaves alone the same statement of another caller', async () => {
    outcomes = [];
    const [one, other] = [start(query), start(query)];
    await untilRunning(2);
    one.leave();
    await one.ended;
    expect(await running()).toBe(1);
    other.leave();
    await other.ended;
    expect(await running()).toBe(0);
  });
});

describe('a scope', () => {
  it('that was aborted before sends nothing', async () => {
    outcomes = [];
    const scope = warehouse.within({ signal: AbortSignal.abort(new Error('gone')) });
    expect(await failureOf(select(scope, 'SELECT 1'))).toMatchObject({ message: 'gone' });
    expect(outcomes).toEqual([]);
  });

  it('that is never aborted changes nothing', async () => {
    outcomes = [];
    const scope = warehouse.within({ signal: new AbortController().signal });
    expect(await select(scope, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    expect(outcomes).toEqual(['ok']);
  });

  it('gives its settings to its statements, and theirs come first', async () => {
    const inner = warehouse
      .within({ settings: { max_threads: 3, max_block_size: '7' } })
      .within({ settings: { max_threads: 2 } });
    const query = "SELECT getSetting('max_threads') AS threads, getSetting('max_block_size') AS rows";
    const read = (settings: NonNullable<Statement['settings']> = {}) =>
      inner.read(
        { name: 'settings', query, query_params: {}, settings },
        z.object({ threads: z.coerce.number(), rows: z.coerce.number() }),
      );
    expect(await read()).toEqual([{ threads: 2, rows: 7 }]);
    expect(await read({ max_block_size: '9' })).toEqual([{ threads: 2, rows: 9 }]);
  });

  it('closes the connection of a server that does not end the statement', async () => {
    const silent = createServer(() => undefined).listen(0, '127.0.0.1');
    await once(silent, 'listening');
    const address = silent.address();
    const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    const own = createWarehouse({ ...database.options, url });
    const abort = new AbortController();
    const ended = failureOf(select(own.within({ signal: abort.signal }), 'SELECT 1'));
    abort.abort(new Error('gone'));
    expect(await ended).toMatchObject({ message: 'gone' });
    await own.close();
    silent.close();
  });
});

describe('a statement', () => {
  it('that takes longer than the server may work is refused', async () => {
    const own = createWarehouse({ ...database.options, maxExecutionMs: 1_000 });
    const statement = { name: 'never_ending', query: STATEMENTS['a SELECT'], query_params: {}, settings: SETTINGS };
    expect(await failureOf(own.read(statement, z.unknown()))).toMatchObject({ code: '159', type: 'TIMEOUT_EXCEEDED' });
    expect(await running()).toBe(0);
    await own.close();
  });

  it('that takes more memory than the server may use is refused', async () => {
    const own = createWarehouse({ ...database.options, maxMemoryBytes: 20 * 2 ** 20 });
    const query = 'SELECT length(groupArray(number)) AS n FROM numbers(10000000)';
    expect(await failureOf(select(own, query))).toMatchObject({ code: '241', type: 'MEMORY_LIMIT_EXCEEDED' });
    expect(await select(own, 'SELECT 1 AS one')).toEqual([{ one: 1 }]);
    await own.close();
  });

  it('that is short is answered while every connection is taken', async () => {
    const own = createWarehouse({ ...database.options, maxConnections: 1 });
    const abort = new AbortController();
    const scope = own.within({ signal: abort.signal });
    const statement = { name: 'never_ending', query: STATEMENTS['a SELECT'], query_params: {}, settings: SETTINGS };
    const long = failureOf(scope.read(statement, z.unknown()));
    await untilRunning(1);
    const short = { name: 'short', query: 'SELECT 1 AS one', query_params: {}, isShort: true };
    expect(await own.read(short, z.unknown())).toEqual([{ one: 1 }]);
    abort.abort(new Error('enough'));
    await long;
    await own.close();
  });
});
