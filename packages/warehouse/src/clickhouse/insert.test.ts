import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, execute, select, type TestDatabase } from '../../../../test/stack.js';
import { REJECTED_EVENTS } from '../events/rejected-events.js';
import { USAGE_EVENTS } from '../events/usage-events.js';
import { type BlockWriter, type Column, encodeNativeBlock, insertBlock, insertStatement } from './insert.js';

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
  await insertBlock(
    database.warehouse,
    table,
    values.map((value, at) => ({ at, value })),
  );
  const query = `SELECT toString(value) AS value FROM ${name} ORDER BY at`;
  return (await select<{ value: string }>(database.warehouse, query)).map((row) => row.value);
}

describe('a native block holds', () => {
  it('the extremes of unsigned integers', async () => {
    expect(await roundTrip('UInt8', [0, 1, 255], (out, value) => out.uint8(value))).toEqual(['0', '1', '255']);
    expect(await roundTrip('UInt16', [0, 256, 65_535], (out, value) => out.uint16(value))).toEqual([
      '0',
      '256',
      '65535',
    ]);
    expect(await roundTrip('UInt32', [0, 65_536, 4_294_967_295], (out, value) => out.uint32(value))).toEqual([
      ...['0', '65536', '4294967295'],
    ]);
  });

  it('booleans', async () => {
    expect(await roundTrip('Bool', [0, 1], (out, value) => out.uint8(value))).toEqual(['false', 'true']);
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

  it('decimals of 38 digits, of either sign', async () => {
    const most = 10n ** 38n - 1n;
    const edges = [0n, 1n, -1n, most, -most, 2n ** 64n - 1n, 2n ** 64n, -(2n ** 64n), 2n ** 63n];
    const values = [...edges, ...fc.sample(fc.bigInt({ min: -most, max: most }), 200)];
    expect(await roundTrip('Decimal(38, 0)', values, (out, value) => out.int128(value))).toEqual(values.map(String));
  });

  it('decimals at their scale', async () => {
    const values = [1n, 1_500_000_000n, -1_500_000_000n, 123_456_789_012_345_123_456_789n];
    expect(await roundTrip('Decimal(38, 9)', values, (out, value) => out.int128(value))).toEqual([
      '0.000000001',
      '1.5',
      '-1.5',
      '123456789012345.123456789',
    ]);
  });

  it('UUIDs, in either case', async () => {
    const ids = ['00000000-0000-0000-0000-000000000000', 'ffffffff-ffff-ffff-ffff-ffffffffffff'];
    const values = [...ids, '01234567-89ab-cdef-fedc-ba9876543210', ...fc.sample(fc.uuid(), 200)];
    const asWritten = [...values, '01234567-89AB-CDEF-FEDC-BA9876543210'];
    expect(await roundTrip('UUID', asWritten, (out, value) => out.uuid(value))).toEqual(
      asWritten.map((value) => value.toLowerCase()),
    );
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
    const values = Array.from({ length: 20_000 }, (_, index) => index % 256);
    expect(await roundTrip('UInt8', values, (out, value) => out.uint8(value))).toEqual(values.map(String));
  });
});

describe('a native block refuses', () => {
  const write = (work: (out: BlockWriter) => void) => () =>
    encodeNativeBlock([{ name: 'a', type: 'String', write: work }], [0], 1);

  it.each([
    ['a UInt16 below 0', (out: BlockWriter) => out.uint16(-1)],
    ['a UInt16 above 65,535', (out: BlockWriter) => out.uint16(65_536)],
    ['a UInt32 above 2^32 − 1', (out: BlockWriter) => out.uint32(2 ** 32)],
    ['an Int128 above 2^127 − 1', (out: BlockWriter) => out.int128(2n ** 127n)],
    ['an Int128 below −2^127', (out: BlockWriter) => out.int128(-(2n ** 127n) - 1n)],
  ])('%s', (_, work) => {
    expect(write(work)).toThrow('out of range');
  });
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
