import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { MIGRATIONS_DIRECTORY, MigrationError, pendingMigrations, readMigrations } from './migrator.js';

const CREATE = 'CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x\n';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'migrations-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function files(contents: Readonly<Record<string, string>>): Promise<void> {
  for (const [name, sql] of Object.entries(contents)) await writeFile(join(directory, name), sql);
}

describe('the files of migrations', () => {
  it('of Meterline itself are in order', async () => {
    const migrations = await readMigrations(MIGRATIONS_DIRECTORY);
    expect(migrations.map(({ version }) => version)).toEqual(migrations.map((_, index) => index + 1));
    expect(migrations.map(({ name }) => name)).toContain('0001_usage_events.sql');
  });

  it('are read in the order of their numbers', async () => {
    await files({ '0002_b.sql': CREATE, '0001_z.sql': CREATE, 'README.md': 'not a migration' });
    expect(await readMigrations(directory)).toMatchObject([
      { version: 1, name: '0001_z.sql' },
      { version: 2, name: '0002_b.sql' },
    ]);
  });

  it.each([
    ['a gap', { '0001_a.sql': CREATE, '0003_c.sql': CREATE }, '0003_c.sql is out of order: expected number 0002'],
    ['a number twice', { '0001_a.sql': CREATE, '0001_b.sql': CREATE }, '0001_b.sql is out of order: expected'],
    ['a start at 0', { '0000_a.sql': CREATE }, '0000_a.sql is out of order: expected number 0001'],
    ['a name without a number', { 'a.sql': CREATE }, 'a.sql is out of order'],
    ['a number of three digits', { '001_a.sql': CREATE }, '001_a.sql is out of order'],
  ])('with %s are refused by name', async (_, contents, message) => {
    await files(contents);
    await expect(readMigrations(directory)).rejects.toThrow(MigrationError);
    await expect(readMigrations(directory)).rejects.toThrow(message);
  });

  it.each([
    'CREATE TABLE a (x UInt8) ENGINE = MergeTree ORDER BY x',
    'CREATE OR REPLACE VIEW a AS SELECT 1',
    'CREATE MATERIALIZED VIEW IF NOT EXISTS a TO b AS SELECT 1',
    'ALTER TABLE a ADD COLUMN b UInt8',
    'ALTER TABLE a DELETE WHERE 1',
    'DROP TABLE a',
    'INSERT INTO a VALUES (1)',
    'TRUNCATE TABLE a',
    '-- CREATE TABLE IF NOT EXISTS a\nDROP TABLE a',
    '-- nothing but a comment',
    '',
  ])('may not hold %j, which does something the second time or fails', async (sql) => {
    await files({ '0001_a.sql': sql });
    await expect(readMigrations(directory)).rejects.toThrow(
      'migration 0001_a.sql must be one statement with IF NOT EXISTS or IF EXISTS',
    );
  });

  it.each([
    CREATE,
    '-- why\n--  and why again\n\nCREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = Log',
    'ALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8',
    'ALTER TABLE a ADD COLUMN IF NOT EXISTS b Map(String, Decimal(38, 9)) CODEC(Delta, ZSTD(1))',
    'ALTER TABLE a DROP COLUMN IF EXISTS b',
    'DROP TABLE IF EXISTS a',
    'CREATE VIEW IF NOT EXISTS a AS SELECT 1',
    'ALTER TABLE a MODIFY SETTING b = 1',
  ])('may hold %j', async (sql) => {
    await files({ '0001_a.sql': sql });
    await expect(readMigrations(directory)).resolves.toHaveLength(1);
  });

  it.each([
    'ALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8, ADD COLUMN c UInt8',
    'ALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8, DELETE WHERE 1',
    'ALTER TABLE a MODIFY SETTING b = 1, DELETE WHERE 1',
    'ALTER TABLE a DROP COLUMN IF EXISTS b,\n  DROP COLUMN c',
  ])('may not hold %j, whose second part does so', async (sql) => {
    await files({ '0001_a.sql': sql });
    await expect(readMigrations(directory)).rejects.toThrow(MigrationError);
  });

  it('have a checksum of their text, whatever the line endings', async () => {
    await files({ '0001_a.sql': CREATE, '0002_b.sql': CREATE.replaceAll('\n', '\r\n'), '0003_c.sql': `${CREATE} ` });
    const [unix, windows, edited] = await readMigrations(directory);
    expect(unix?.checksum).toMatch(/^[0-9a-f]{64}$/);
    expect(windows?.checksum).toBe(unix?.checksum);
    expect(edited?.checksum).not.toBe(unix?.checksum);
  });
});

describe('pending migrations', () => {
  const file = (version: number, checksum = 'x') => ({ version, name: `000${version}_m.sql`, sql: CREATE, checksum });

  it('are those that have not run, in order', () => {
    expect(pendingMigrations([file(1), file(2), file(3)], [file(1)], 'm')).toEqual([file(2), file(3)]);
  });

  it.each([
    ['was edited after it ran', [file(1), file(2)], [file(1), file(2, 'y')]],
    ['is not there', [file(1)], [file(1), file(2)]],
    ['has another name', [{ ...file(1), name: '0001_n.sql' }, file(2)], [file(1), file(2)]],
  ])('are refused when a file %s', (_, migrations, applied) => {
    expect(() => pendingMigrations(migrations, applied, 'm')).toThrow('database m was made by another build');
  });
});
