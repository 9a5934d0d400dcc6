/** ClickHouse servers whose profile an operator has changed: results are exact, or fail; nothing wrong is stored. */
import { createServer } from 'node:http';
import { ClickHouseError } from '@clickhouse/client';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { MS_PER_HOUR } from '@meterline/catalog';
import { type Servers, startServers } from '@meterline/local-stack';
import { pricedEvent } from '../../../../test/harness/events.js';
import { failureOf } from '../../../../test/harness/failure.js';
import { listening } from '../../../../test/harness/listening.js';
import { storeEvents } from '../../../../test/harness/stack.js';
import { HOSTILE_PROFILE } from '../../../../test/setup/hostile-profile.mjs';
import { insertUsageEvents } from '../events/usage-events.js';
import { readMetrics, readStoredMetrics, storeMetrics } from '../metrics/read.js';
import { readRollupDifferences } from '../operations/audit.js';
import { readDirtyHours } from '../rollups/dirty-hours.js';
import { recomputeDirtyHours, sealNext } from '../rollups/maintenance.js';
import { NO_ROLLUPS } from '../rollups/watermarks.js';
import { migrate } from '../schema/migrator.js';
import { checkConnection, createWarehouse, type Warehouse, type WarehouseOptions } from './connection.js';
import { isStatementLimit, UnusableServerError } from './errors.js';

const DAY = Date.UTC(2025, 9, 1);
const window = { startTime: DAY, endTime: DAY + 2 * MS_PER_HOUR };
const GROUPS = 12;
const events = Array.from({ length: GROUPS }, (_, index) =>
  pricedEvent({ timestamp: DAY + (index % 2) * MS_PER_HOUR, resourceName: `box-${index}`, cost: 10n ** 12n }),
);
const query = {
  ...({ accounts: ['acme'], window, filters: {}, groupBy: ['resource_name'], resolution: 'hourly' } as const),
  limit: 5,
};

let servers: Servers;
let warehouse: Warehouse;
const optionsOf = ({ clickhouse: { url, user, password } }: Servers): WarehouseOptions => ({
  ...{ url, user, password, database: 'meterline', application: 'meterline-test' },
});
beforeAll(async () => {
  servers = await startServers({ redis: false, profile: HOSTILE_PROFILE });
  await migrate(optionsOf(servers));
  warehouse = createWarehouse(optionsOf(servers));
  // Each becomes a part of its own, and so a block.
  for (const event of events) await insertUsageEvents(warehouse, [event]);
});
afterAll(async () => {
  await warehouse.close();
  await servers.stop();
});

const TOTALS = { totals: { cost: String(GROUPS) }, totalGroups: GROUPS };

it('results from events, their later pages and an empty result are those of any other server', async () => {
  await checkConnection(warehouse);
  const wanted = { ...query, rollups: NO_ROLLUPS };
  const { mark, ...result } = await readMetrics(warehouse, wanted);
  expect(result).toMatchObject({ ...TOTALS, groups: { length: query.limit } });
  const stored = { owner: 'acme', resultId: '0190c5e4-7b1a-7def-8abc-000000000001' };
  await storeMetrics(warehouse, stored, wanted, mark.digest);
  const page = await readStoredMetrics(warehouse, stored, { ...wanted, after: query.limit, limit: GROUPS });
  expect(page).toMatchObject({ ...TOTALS, groups: { length: GROUPS - query.limit } });
  const none = await readMetrics(warehouse, { ...wanted, accounts: ['globex'], groupBy: [] });
  expect(none).toMatchObject({ groups: [{ cost: '0' }], totals: { cost: '0' } });
});

/** Each is exceeded by 12 rows. Source: ClickHouse documentation, "Restrictions on query complexity". */
const LIMITS = [
  'max_rows_to_read',
  'max_rows_to_read_leaf',
  'max_rows_to_group_by',
  'max_rows_to_sort',
  'max_result_rows',
  'max_rows_in_set',
  'max_rows_in_distinct',
];

/** Limits are checked after each block. */
const SMALL_BLOCKS = { max_block_size: '1', max_threads: 1 } as const;

describe('with a limit that a statement exceeds', () => {
  it.each(LIMITS)('%s: a result is whole, or its statement fails', async (limit) => {
    const limited = warehouse.within({ settings: { ...SMALL_BLOCKS, [limit]: '2' } });
    const outcome = await readMetrics(limited, { ...query, rollups: NO_ROLLUPS }).catch((error: unknown) => error);
    if (isStatementLimit(outcome)) return;
    expect(outcome).toMatchObject(TOTALS);
  });

  it.each(LIMITS)('%s: rollup rows are whole, or their hours stay dirty', async (limit) => {
    const limited = warehouse.within({ settings: { ...SMALL_BLOCKS, [limit]: '2' } });
    while (await sealNext([warehouse], window.endTime));
    await storeEvents(warehouse, events);
    await recomputeDirtyHours(limited).catch((error: unknown) => expect(isStatementLimit(error)).toBe(true));
    const dirtyHours = await readDirtyHours(warehouse, ['acme'], window);
    const rollups = { hourly: window.endTime, daily: 0, dirtyHours };
    expect(await readMetrics(warehouse, { ...query, rollups })).toMatchObject(TOTALS);
    while ((await recomputeDirtyHours(warehouse)).marks > 0);
    expect(await readRollupDifferences(warehouse, 'hourly', { window })).toEqual([]);
  });
});

it.each([
  ['Query memory limit exceeded: would use 2.00 GiB', true],
  ['Memory limit (for query) exceeded: would use 2.00 GiB', true],
  ['(total) memory limit exceeded: would use 20.00 GiB', false],
  ['Memory limit (total) exceeded: would use 20.00 GiB', false],
  ['User memory limit exceeded: would use 5.00 GiB', false],
])('"%s" is a limit of the statement: %s', (message, isOfStatement) => {
  expect(isStatementLimit(new ClickHouseError({ message, code: '241' }))).toBe(isOfStatement);
});

const FITS = { version: '26.7.2.1', settings: [['read_overflow_mode', 'throw']] };

it.each([
  ['an older server', 200, JSON.stringify([{ ...FITS, version: '26.6.9.1' }]), 'its version is 26.6.9.1'],
  [
    'a constraint that keeps a setting as it is',
    200,
    JSON.stringify([{ ...FITS, settings: [['read_overflow_mode', 'break']] }]),
    'read_overflow_mode stays "break" although Meterline sets "throw"',
  ],
  [
    'a user with readonly',
    500,
    "Code: 164. DB::Exception: Cannot modify 'limit' setting in readonly mode. (READONLY)",
    'limit',
  ],
  [
    'a constraint',
    500,
    'Code: 452. DB::Exception: Setting limit should not be changed. (SETTING_CONSTRAINT_VIOLATION)',
    'limit',
  ],
  [
    'a server that lacks a setting',
    400,
    "Code: 115. DB::Exception: Unknown setting 'limit'. (UNKNOWN_SETTING)",
    'limit',
  ],
])('%s is rejected with the requirement', async (_what, status, body, reason) => {
  const server = createServer((request, response) =>
    request.resume().on('end', () => response.writeHead(status).end(body)),
  );
  const own = createWarehouse({ ...optionsOf(servers), url: await listening(server) });
  const failure = await failureOf(checkConnection(own)).finally(() => Promise.all([own.close(), server.close()]));
  expect(failure).toBeInstanceOf(UnusableServerError);
  expect(String(failure)).toMatch(
    new RegExp(`${reason}.*; Meterline needs ClickHouse 26.7 or newer, and a user without readonly`),
  );
});
