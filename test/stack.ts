/** A database and a queue of its own for each test file, on the servers that the run's global set-up started. */
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

/** A prefix that no other test file uses; Redis is shared. */
export function uniquePrefix(): string {
  return `test-${randomUUID()}`;
}

/** A migrated database, dropped by `drop`: a copy of the one that the set-up has migrated, in a sixth of the statements. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const options: WarehouseOptions = {
    url: testClickHouseUrl(),
    user: 'default',
    password: '',
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

/** The tables exactly as the template has them, and the history of its migrations. */
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

/** A test's own SELECT. @returns its rows as they come: 64-bit integers and decimals are texts */
export function select<Row = Record<string, unknown>>(
  warehouse: Warehouse,
  query: string,
  query_params: Statement['query_params'] = {},
): Promise<Row[]> {
  return warehouse.read({ name: 'test', query, query_params }, z.custom<Row>());
}

/** A test's own statement that answers with nothing. Of a mutation it resolves when that is done. */
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
