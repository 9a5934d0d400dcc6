/** Each test file's own database and queue, on the servers that the global set-up started. */
import { randomUUID } from 'node:crypto';
import { createWarehouse, type Statement, type Warehouse, type WarehouseOptions } from '@meterline/warehouse';
import { z } from 'zod';

export interface TestDatabase {
  readonly options: WarehouseOptions;
  readonly warehouse: Warehouse;
  drop(): Promise<void>;
}

export function testRedisUrl(): string {
  return required('METERLINE_TEST_REDIS_URL');
}

export function testClickHouseUrl(): string {
  return required('METERLINE_TEST_CLICKHOUSE_URL');
}

/** How a process is told of a database. */
export function databaseVariables({ url, user, password, database }: WarehouseOptions) {
  return {
    CLICKHOUSE_URL: url,
    CLICKHOUSE_USER: user,
    CLICKHOUSE_PASSWORD: password,
    CLICKHOUSE_DATABASE: database,
  };
}

/** A prefix that no other test file uses; Redis is shared. */
export function uniquePrefix(): string {
  return `test-${randomUUID()}`;
}

/** Creates a migrated database by copying the template, which takes a sixth of the statements of a migration. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const options: WarehouseOptions = {
    url: testClickHouseUrl(),
    user: required('METERLINE_TEST_CLICKHOUSE_USER'),
    password: required('METERLINE_TEST_CLICKHOUSE_PASSWORD'),
    database: `test_${randomUUID().replaceAll('-', '')}`,
    application: 'meterline-test',
  };
  await copyTemplate(options, required('METERLINE_TEST_TEMPLATE'));
  const warehouse = createWarehouse(options);
  return {
    options,
    warehouse,
    drop: async () => {
      await execute(warehouse, `DROP DATABASE ${options.database} SYNC`);
      await warehouse.close();
    },
  };
}

/** Copies the template's tables and the list of its applied migrations. */
async function copyTemplate(options: WarehouseOptions, template: string): Promise<void> {
  const { database } = options;
  const server = createWarehouse({ ...options, database: template });
  try {
    const [tables] = await Promise.all([
      select<{ create: string }>(
        server,
        'SELECT create_table_query AS create FROM system.tables WHERE database = {template: String}',
        { template },
      ),
      execute(server, `CREATE DATABASE ${database}`),
    ]);
    const inCopy = ({ create }: { create: string }) => create.replaceAll(`${template}.`, `${database}.`);
    await Promise.all(tables.map((table) => execute(server, inCopy(table))));
    await execute(server, `INSERT INTO ${database}.schema_migrations SELECT * FROM ${template}.schema_migrations`);
  } finally {
    await server.close();
  }
}

/** Runs a test's own SELECT. @returns the rows unchanged: 64-bit integers and decimals are strings */
export function select<Row = Record<string, unknown>>(
  warehouse: Warehouse,
  query: string,
  query_params: Statement['query_params'] = {},
): Promise<Row[]> {
  return warehouse.read({ name: 'test', query, query_params }, z.custom<Row>());
}

/** Runs a test's own statement that returns no rows. For a mutation, waits until it is done. */
export function execute(
  warehouse: Warehouse,
  query: string,
  query_params: Statement['query_params'] = {},
): Promise<void> {
  return warehouse.run({ name: 'test', query, query_params, settings: { mutations_sync: '2' } });
}

function required(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: run the tests with npm test or npm run jest`);
  return value;
}
