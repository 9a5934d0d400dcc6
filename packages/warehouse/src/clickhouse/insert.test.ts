import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/stack.js';
import { REJECTED_EVENTS } from '../events/rejected-events.js';
import { USAGE_EVENTS } from '../events/usage-events.js';
import { type BlockWriter, type Column, encodeNativeBlock, insertStatement, prepareInsert } from './insert.js';

let database: TestDatabase;
let tables = 0;
beforeAll(async () => {
  database = await createTestDatabase();
});
afterAll(() => database.drop());

/** Writes the values into a column of that type and gives them back as the server prints them. */
async function roundTrip<Value>(
  type: string,
  values: readonly Value[],
  write: (out: BlockWriter, value: Value) => void,
  sentAs = type,
): Promise<unknown[]> {
  tables += 1;
  const name = `native_${tables}`;
  await execute(database.warehouse, `CREATE TABLE ${name} (at UInt32, value ${type}) ENGINE = MergeTree ORDER BY at`);
  const columns: Column<{ at: number; value: Value }>[] = [
    { name: 'at', type: 'UInt32', write: (out, row) => out.uint32(row.at) },
    { name: 'value', type: sentAs, write: (out, row) => write(out, row.value) },
  ];
  // One byte a row is far too little, so the buffer has to grow.
  const table = { name, columns, bytesPerRow: 1 };
  const rows = values.map((value, at) => ({ at, value }));
  await prepareInsert(table, rows)(database.warehouse);
  const query = `SELECT toString(value) AS value FROM ${name} ORDER BY at`;
  return (await select<{ value: string }>(database.warehouse, query)).map((row) => row.value);
}

describe('a native block holds', () => {
  it('the extremes of unsigned integers', async () => {
    const values = [0, 65_536, 4_294_967_295];
    expect(await roundTrip('UInt32', values, (out, value) => out.uint32(value))).toEqual(values.map(String));
  });

  it('every safe integer', async () => {
    const edges = [0, -1, 1, 2 ** 31, 2 ** 32 - 1, 2 ** 32, -(2 ** 32), -(2 ** 32) - 1].concat(
      Number.MAX_SAFE_INTEGER,
      Number.MIN_SAFE_INTEGER,
    );
    const values = [...edges, ...fc.sample(fc.maxSafeInteger(), 200)];
    expect(await roundTrip('Int64', values, (out, value) => out.int64(value))).toEqual(values.map(String));
  });

  it('instants to the millisecond, also before 1970', async () => {
    const values = [0, -1, Date.UTC(2025, 9, 1, 12, 0, 0, 7), Date.UTC(2299, 11, 31, 23, 59, 59, 999)];
    const printed = values.map((value) => new Date(value).toISOString().slice(0, -1).replace('T', ' '));
    expect(await roundTrip("DateTime64(3, 'UTC')", values, (out, value) => out.int64(value))).toEqual(printed);
  });

  it.each(['String', 'LowCardinality(String)'])('texts of every length and script as %s', async (type) => {
    const lengths = [0, 1, 41, 42, 43, 44, 126, 127, 128, 129, 300, 16_383, 16_384, 70_000];
    const values = [
      ...['a', 'é', '€', '😀'].flatMap((character) => lengths.map((length) => character.repeat(length))),
      ...[`'"\\`, '{a: String}', '%s', "'; DROP TABLE a", 'a\nb\tc\0d', '\u2028', 'e\u0301'],
      ...fc.sample(fc.string({ unit: 'binary', maxLength: 300 }), 200),
    ];
    // LowCardinality is sent as plain String and cast by the server, as Meterline's tables do.
    expect(await roundTrip(type, values, (out, value) => out.string(value), 'String')).toEqual(values);
  });

  it('nothing but its header when there are no rows', () => {
    const columns: Column<never>[] = [{ name: 'a', type: 'UInt8', write: () => undefined }];
    expect([...encodeNativeBlock(columns, [], 1)]).toEqual([1, 0, 1, 97, 5, ...Buffer.from('UInt8')]);
  });

  it('a number of rows that takes several bytes', async () => {
    const values = Array.from({ length: 20_000 }, (_, index) => index);
    expect(await roundTrip('UInt32', values, (out, value) => out.uint32(value))).toEqual(values.map(String));
  });
});

it('a native block refuses a UInt32 above 2^32 − 1', () => {
  const columns: Column<number>[] = [{ name: 'a', type: 'UInt32', write: (out, value) => out.uint32(value) }];
  expect(() => encodeNativeBlock(columns, [2 ** 32], 1)).toThrow('out of range');
});

describe('insert statements', () => {
  it('of usage events name every column that is stored, and none that the table computes', () => {
    expect(insertStatement(USAGE_EVENTS)).toBe(
      'INSERT INTO usage_events (account_id, event_id, timestamp, workspace, resource_type, resource_name, ' +
        'resource_uuid, billing_dimension, usage, revision, voided, cost, price_revision, price_book) FORMAT Native',
    );
  });

  it('of rejected events name every column', () => {
    expect(insertStatement(REJECTED_EVENTS)).toBe(
      'INSERT INTO rejected_events (received_at, job_id, position, account_id, reason, message, payload) FORMAT Native',
    );
  });
});
