/** clickhouse/users.xml: each user can do its work, and nothing else. */
import { writeFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { DEFAULT_PRICE_BOOK_FILE } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import { type Servers, startServers } from '@meterline/local-stack';
import { createWarehouse, type Warehouse, type WarehouseOptions } from '@meterline/warehouse';
import { runCommand } from '../cli/run-command.js';
import { usageEvent } from '../harness/events.js';
import { failureOf } from '../harness/failure.js';
import { type Product, startProduct } from '../harness/product.js';
import { launchService, NO_LIMITS, startIngest, startQuery, withConstants } from '../harness/services.js';
import { databaseVariables, execute, select, uniquePrefix } from '../harness/stack.js';
import { until } from '../harness/waiting.js';

type User = 'ingest' | 'query' | 'operator' | 'migrate';

let servers: Servers;
let product: Product;
const warehouses: Warehouse[] = [];

function optionsOf(user: User): WarehouseOptions {
  const { url, passwords } = servers.clickhouse;
  return { url, user, password: passwords[user], database: 'meterline', application: 'meterline-test' };
}

function connect(user: User): Warehouse {
  const warehouse = createWarehouse(optionsOf(user));
  warehouses.push(warehouse);
  return warehouse;
}

const envOf = (user: User) => ({ ...product.env, ...databaseVariables(optionsOf(user)) });
const run = (args: readonly string[], user: User = 'operator') => runCommand(args, { env: envOf(user) });

beforeAll(async () => {
  servers = await startServers({ redis: false });
  product = await startProduct({ clickhouse: servers.clickhouse });
});
afterAll(async () => {
  await Promise.all(warehouses.map((warehouse) => warehouse.close()));
  await product.queue.obliterate({ force: true });
  await product.close();
  await servers.stop();
});

it('services say what to do when the schema is not there, and change nothing', async () => {
  const names = ['ingest', 'query'] as const;
  const services = names.map((name) => launchService(name, envOf(name)));
  for (const [index, service] of services.entries()) {
    const name = names[index];
    expect(await service.exited).toEqual({ code: 1, signal: null });
    expect(service.errorLines()).toEqual([
      expect.stringMatching(
        new RegExp(
          `^meterline-${name}: database meterline lacks migrations up to \\d{4}_\\w+\\.sql, and user ${name} may not run ` +
            'them; run "meterline migrate" as a user that may, and start again$',
        ),
      ),
    ]);
  }
  expect(await failureOf(select(product.warehouse, 'SELECT 1'))).toMatchObject({ type: 'UNKNOWN_DATABASE' });
});

describe('with the schema that migrate has made', () => {
  const account = uniquePrefix();
  const event = (n: number, resourceName: string, timestamp = '2026-01-01T00:00:00Z') =>
    usageEvent(n, { accountId: account, resourceName, timestamp });
  beforeAll(async () => {
    expect(await run(['migrate'], 'migrate')).toMatchObject({ code: 0 });
  });

  it('ingest stores, rejects and seals; query answers and pages; operator corrects, drops a month and erases', async () => {
    const worker = await startIngest(withConstants(envOf('ingest'), { maintenanceEveryMs: 200 }));
    const api = await startQuery({ ...envOf('query'), ...NO_LIMITS });
    const add = async (...events: object[]) => {
      await product.send(...events);
    };

    await add(event(1, 'a'), event(2, 'b'), event(3, 'c'), { ...event(4, 'd'), usage: -1 });
    await worker.entry(({ event: name, grain }) => name === 'sealed' && grain === 'daily');
    await add(event(5, 'late'));
    expect(await run(['audit'])).toMatchObject({ code: 0 });

    const client = new MeterlineClient({ baseUrl: api.url, credential: await product.key(account) });
    const day = { startTime: '2026-01-01T00:00:00Z', endTime: '2026-01-02T00:00:00Z' };
    const names: string[] = [];
    const groups = client.metricsEntries(account, { ...day, groupBy: ['resource_name'], limit: 1 });
    for await (const { resourceName } of groups) names.push(resourceName);
    expect(names).toEqual(['a', 'b', 'c', 'late']);
    const { data: listed } = await client.events(account, day);
    expect([listed.length, listed[0]?.price]).toEqual([4, expect.anything()]);

    const book = servers.directory.file('twice.json');
    const prices = DEFAULT_PRICE_BOOK_FILE.prices.map((price) => ({ ...price, amount: '1' }));
    await writeFile(book, JSON.stringify({ ...DEFAULT_PRICE_BOOK_FILE, version: 1, prices }));
    const window = ['--from', day.startTime, '--to', day.endTime];
    const repriced = await run(['reprice', '--account', account, ...window, '--book', book]);
    expect(repriced).toMatchObject({ code: 0, stdout: expect.stringContaining('Changed 4 of 4 events') });
    expect(await run(['rejected', 'discard', '--all', '--account', account, '--yes'])).toMatchObject({ code: 0 });
    await until('the maintainer has recomputed what was re-priced', async () => {
      const marks = 'SELECT toString(sum(sign)) AS left FROM dirty_hours';
      return (await select<{ left: string }>(product.warehouse, marks))[0]?.left === '0';
    });
    await execute(product.warehouse, 'TRUNCATE TABLE usage_hourly');
    expect(await run(['audit', '--repair'])).toMatchObject({
      stdout: expect.stringContaining('0 left after the repair'),
    });
    await add(event(6, 'old', '2025-12-05T00:00:00Z'));
    expect(await run(['retention', 'close', '--before', '2026-01', '--yes'])).toMatchObject({ code: 0 });
    expect(await run(['retention', 'drop', '--yes'])).toMatchObject({
      stdout: 'Dropped the events of 2025-12.\n',
    });
    expect(await run(['erase', '--account', account, '--confirm', account])).toMatchObject({
      code: 0,
      stdout: 'Erased 8 stored events, 0 rejected events, 1 API key, 0 alerts, 0 saved views.\n',
    });
    for (const service of [worker, api]) expect(service.log()).not.toContain('ACCESS_DENIED');
    expect(await Promise.all([worker.stop(), api.stop()])).toEqual([0, 0]);
  });

  it('query ends its own statements, and can neither see nor end those of others', async () => {
    const query = connect('query');
    const abort = new AbortController();
    const endless = 'SELECT sleepEachRow(0.01) FROM numbers(100000000) FORMAT Null SETTINGS max_block_size = 10';
    const settings = { function_sleep_max_microseconds_per_block: '1000000000' };
    const start = (user: Warehouse, signal: AbortSignal) =>
      failureOf(user.within({ signal, settings }).run({ name: 'endless', query: endless, query_params: {} }));
    const running = async () => {
      const statement =
        "SELECT user FROM system.processes WHERE query LIKE '%sleepEachRow%' AND user != 'meterline' ORDER BY user";
      return (await select<{ user: string }>(product.warehouse, statement)).map(({ user }) => user);
    };
    const other = new AbortController();
    const ended = [start(query, abort.signal), start(connect('ingest'), other.signal)];
    await until('both run', async () => (await running()).join() === 'ingest,query');

    expect(await select(query, "SELECT user FROM system.processes WHERE user = 'ingest'")).toEqual([]);
    await failureOf(select(query, "KILL QUERY WHERE user = 'ingest' SYNC FORMAT JSONEachRow"));
    abort.abort(new Error('gone'));
    expect(await ended[0]).toMatchObject({ message: 'gone' });
    expect(await running()).toEqual(['ingest']);
    await execute(product.warehouse, "KILL QUERY WHERE user = 'ingest' SYNC FORMAT Null");
    await ended[1];
  });

  /** By table: who may read, insert and delete; the letters are those that the users begin with. */
  const RIGHTS = {
    schema_migrations: ['iqom', 'm', ''],
    price_books: ['iqo', 'io', ''],
    added_dimensions: ['iqo', 'iq', 'o'],
    rollup_watermarks: ['iqo', 'i', ''],
    retention_bounds: ['iqo', 'o', ''],
    result_pages: ['qo', 'q', 'o'],
    rejected_events: ['o', 'i', 'o'],
    settled_rejections: ['o', 'o', ''],
    ...Object.fromEntries(
      ['usage_events', 'usage_hourly', 'usage_daily', 'dirty_hours'].map((table) => [table, ['iqo', 'io', 'o']]),
    ),
  };
  const OF_ROWS: readonly ((table: string) => readonly string[])[] = [
    (table) => [`SELECT * FROM ${table} LIMIT 1`, `SELECT count() FROM (SELECT * FROM ${table})`],
    (table) => [`INSERT INTO ${table} SELECT * FROM ${table}`, `INSERT INTO ${table} FORMAT JSONEachRow {}`],
    (table) => [`ALTER TABLE ${table} DELETE WHERE 0`, `DELETE FROM ${table} WHERE 0`],
  ];
  const OF_NOBODY = (table: string) => [
    `ALTER TABLE ${table} UPDATE account_id = '' WHERE 0`,
    `OPTIMIZE TABLE ${table} FINAL`,
    // Sealing begins again when an operator removes the watermarks.
    ...(table === 'rollup_watermarks' ? [] : [`TRUNCATE TABLE ${table}`]),
    `RENAME TABLE ${table} TO gone`,
    `SYSTEM STOP MERGES meterline.${table}`,
    `BACKUP TABLE ${table} TO File('gone')`,
    `INSERT INTO FUNCTION file('gone', TSV) SELECT * FROM ${table}`,
  ];
  const OF_MIGRATE = (table: string) => [
    `ALTER TABLE ${table} ADD COLUMN gone UInt8`,
    `ALTER TABLE ${table} MODIFY SETTING merge_with_ttl_timeout = 1`,
    `DROP TABLE ${table}`,
    `DETACH TABLE ${table}`,
    `CREATE TABLE gone AS ${table}`,
  ];
  const OUTSIDE = [
    "SELECT * FROM file('/etc/passwd', LineAsString)",
    "SELECT * FROM url('http://127.0.0.1:1/', LineAsString)",
    "SELECT * FROM remote('127.0.0.1', system.one)",
    "INSERT INTO FUNCTION file('/tmp/written', LineAsString) VALUES ('x')",
    'CREATE USER guest',
    'GRANT ALL ON *.* TO ingest',
    'CREATE DATABASE other',
    'DROP DATABASE meterline',
    'SYSTEM SHUTDOWN',
    "BACKUP DATABASE meterline TO File('/tmp/backup')",
    'CREATE FUNCTION f AS x -> x',
    'CREATE TEMPORARY TABLE mine (x UInt8)',
  ];
  const SEALS_GONE = 'TRUNCATE TABLE rollup_watermarks';
  const TABLE = ['CREATE TABLE mine (x UInt8) ENGINE = MergeTree ORDER BY x', 'CREATE VIEW v AS SELECT 1'];

  it('every table has its rights in this test', async () => {
    const tables = await select<{ name: string }>(product.warehouse, 'SHOW TABLES');
    expect(tables.map(({ name }) => name).sort()).toEqual(Object.keys(RIGHTS).sort());
  });

  it.each<{ user: User; forbidden: readonly string[] }>([
    { user: 'ingest', forbidden: [...TABLE, SEALS_GONE, 'SELECT Settings FROM system.processes'] },
    { user: 'query', forbidden: [...TABLE, SEALS_GONE, 'SELECT Settings FROM system.processes'] },
    { user: 'operator', forbidden: [...TABLE, 'SELECT Settings FROM system.processes'] },
    { user: 'migrate', forbidden: [SEALS_GONE, 'SELECT query FROM system.processes'] },
  ])('$user is refused everything else', async ({ user, forbidden }) => {
    const warehouse = connect(user);
    const ofTables = Object.entries(RIGHTS).flatMap(([table, rights]) => [
      ...OF_ROWS.flatMap((statements, right) => (rights[right]?.includes(user.charAt(0)) ? [] : statements(table))),
      ...OF_NOBODY(table),
      ...(user === 'migrate' ? [] : OF_MIGRATE(table)),
    ]);
    for (const query of [...OUTSIDE, ...forbidden, ...ofTables]) {
      const outcome = warehouse.run({ name: 'forbidden', query, query_params: {} }).catch((error: unknown) => error);
      expect({ query, outcome: await outcome }).toMatchObject({
        query,
        outcome: { code: '497', type: 'ACCESS_DENIED' },
      });
    }
  });
});
