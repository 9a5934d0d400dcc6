/** What the files may hold, and what becomes of them in a cluster. What running them does: migrator.it.test.ts. */
import { readFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { expect, it } from '@jest/globals';
import { testFolder } from '../../../../test/harness/test-folder.js';
import { inCluster, MIGRATIONS_DIRECTORY, pendingMigrations, readMigrations } from './migrator.js';

const CREATE = 'CREATE TABLE IF NOT EXISTS a (x UInt8) ENGINE = MergeTree ORDER BY x\n';
const SHARDS = { name: 'prod', insertQuorum: undefined };
const REPLICAS = { name: 'prod', insertQuorum: 2 };

const folder = testFolder('each test');

async function read(contents: Readonly<Record<string, string>>) {
  for (const [name, sql] of Object.entries(contents)) await writeFile(folder(name), sql);
  return readMigrations(folder());
}

it('migration files are read in the order of their numbers', async () => {
  const migrations = await read({ '0002_b.sql': CREATE, '0001_z.sql': CREATE, 'README.md': 'not a migration' });
  expect(migrations).toMatchObject([
    { version: 1, name: '0001_z.sql' },
    { version: 2, name: '0002_b.sql' },
  ]);
});

it.each([
  [['0001_a.sql', '0003_c.sql'], '0003_c.sql is out of order: expected number 0002'],
  [['0001_a.sql', '0001_b.sql'], '0001_b.sql is out of order: expected'],
  [['0000_a.sql'], '0000_a.sql is out of order: expected number 0001'],
  [['a.sql'], 'a.sql is out of order'],
  [['001_a.sql'], '001_a.sql is out of order'],
])('migration files called %j are rejected because of their names', async (names, message) => {
  const sent = read(Object.fromEntries(names.map((name) => [name, CREATE])));
  await expect(sent).rejects.toMatchObject({ name: 'MigrationError', message: expect.stringContaining(message) });
});

it('migration files have a checksum of their text, whatever the line endings', async () => {
  const windows = CREATE.replaceAll('\n', '\r\n');
  const [first, second, edited] = await read({
    '0001_a.sql': CREATE,
    '0002_b.sql': windows,
    '0003_c.sql': `${CREATE} `,
  });
  expect(first?.checksum).toMatch(/^[0-9a-f]{64}$/);
  expect(second?.checksum).toBe(first?.checksum);
  expect(edited?.checksum).not.toBe(first?.checksum);
});

const file = (version: number, checksum = 'x') => ({ version, name: `000${version}_m.sql`, sql: CREATE, checksum });

it('migrations that have not run are pending, in order', () => {
  expect(pendingMigrations([file(1), file(2), file(3)], [file(1)], 'm')).toEqual([file(2), file(3)]);
});

it.each([
  ['was edited after it ran', [file(1), file(2)], [file(1), file(2, 'y')]],
  ['is not there', [file(1)], [file(1), file(2)]],
  ['has another name', [{ ...file(1), name: '0001_n.sql' }, file(2)], [file(1), file(2)]],
])('migrations are rejected if a file %s', (_, migrations, applied) => {
  expect(() => pendingMigrations(migrations, applied, 'm')).toThrow('database m was made by another build');
});

/** What differs from each file: engines in the shard's own database, and all of what leads to it. */
async function differences(cluster: typeof SHARDS | typeof REPLICAS): Promise<string> {
  const migrations = await readMigrations(MIGRATIONS_DIRECTORY);
  return migrations
    .map(({ name, sql }) => {
      const written = new Set(sql.split('\n'));
      const statements = inCluster(sql, 'meterline', cluster).map(({ database, sql: statement }) => {
        const lines = statement.split('\n').filter((line) => !written.has(line));
        return lines.map((line) => `${database}: ${line}\n`).join('');
      });
      return `${name}\n${statements.join('')}`;
    })
    .join('');
}

it('the migrations differ on shards in what leads to them, and on replicas in the engines, too', async () => {
  const golden = readFileSync(new URL('../../test/golden/replicas.txt', import.meta.url), 'utf8');
  expect(await differences(REPLICAS)).toBe(golden);
  expect(await differences(SHARDS)).toBe(golden.replaceAll(/^local: .*\n/gm, ''));
});

it('the migrations of a cluster quote a name that needs it', () => {
  const sql = 'CREATE TABLE IF NOT EXISTS a\n(\n    account_id String\n)\nENGINE = Log';
  const leading =
    "CREATE TABLE IF NOT EXISTS a AS `it's_local`.a ENGINE = Distributed('prod', 'it\\'s_local', 'a', cityHash64(account_id))";
  expect(inCluster(sql, "it's", SHARDS)[1]?.sql).toBe(leading);
});

it('the migrations of a cluster change a column in both databases, and settings and projections in one', () => {
  const databases = (sql: string) => inCluster(sql, 'meterline', SHARDS).map(({ database }) => database);
  expect(databases('-- Why\nALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8')).toEqual(['local', 'distributed']);
  expect(databases('ALTER TABLE a MODIFY SETTING x = 1')).toEqual(['local']);
});

it('a cluster migration is rejected for a table without a sharding key', () => {
  const sql = 'CREATE TABLE IF NOT EXISTS a\n(\n    x UInt8\n)\nENGINE = Log';
  expect(() => inCluster(sql, 'm', SHARDS)).toThrow('table a has no account_id; name its shards');
});
