/** A database and a queue of its own for each test file, on the servers that the run's global set-up started. */
import { randomUUID } from 'node:crypto';
import { createWarehouse, migrate, type Statement, type Warehouse, type WarehouseOptions } from '@meterline/warehouse';
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

/** A migrated database, dropped by `drop`. */
export async function createTestDatabase(): Promise<TestDatabase> {
  const options: WarehouseOptions = {
    url: testClickHouseUrl(),
    user: 'default',
    password: '',
    database: `test_${randomUUID().replaceAll('-', '')}`,
    application: 'meterline-test',
  };
  await migrate(options);
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
