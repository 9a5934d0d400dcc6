import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { createTestDatabase, select, type TestDatabase } from '../../../../test/stack.js';
import { cityHash64 } from './city-hash.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

async function clickHouseHashes(texts: readonly string[]): Promise<bigint[]> {
  const rows = await select<{ hash: string }>(
    database.warehouse,
    'SELECT cityHash64(toLowCardinality(arrayJoin({texts: Array(String)}))) AS hash',
    { texts },
  );
  return rows.map(({ hash }) => BigInt(hash));
}

describe('cityHash64', () => {
  it('is that of ClickHouse for a text of every length', async () => {
    const texts = Array.from({ length: 300 }, (_, length) =>
      Array.from({ length }, (_, index) => String.fromCodePoint(33 + ((index * 31 + length * 7) % 90))).join(''),
    );
    expect(texts.map(cityHash64)).toEqual(await clickHouseHashes(texts));
  });

  it('is that of ClickHouse for any text', async () => {
    const texts = fc.sample(fc.string({ unit: 'grapheme', maxLength: 256 }), { numRuns: 500, seed: 1 });
    expect(texts.map(cityHash64)).toEqual(await clickHouseHashes(texts));
  });
});
