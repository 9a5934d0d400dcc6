import { readFileSync } from 'node:fs';
import { describe, expect, it } from '@jest/globals';
import { inCluster } from './forms.js';
import { MIGRATIONS_DIRECTORY, readMigrations } from './migrator.js';

const MIGRATIONS = await readMigrations(MIGRATIONS_DIRECTORY);
const SHARDS = { name: 'prod', insertQuorum: undefined };
const REPLICAS = { name: 'prod', insertQuorum: 2 };

/** Of each file, what differs from it: engines in the shard's own database, and all of what leads to it. */
function differences(cluster: typeof SHARDS | typeof REPLICAS): string {
  return MIGRATIONS.map(({ name, sql }) => {
    const written = new Set(sql.split('\n'));
    const statements = inCluster(sql, 'meterline', cluster).map(({ database, sql: statement }) => {
      const lines = statement.split('\n').filter((line) => !written.has(line));
      return lines.map((line) => `${database}: ${line}\n`).join('');
    });
    return `${name}\n${statements.join('')}`;
  }).join('');
}

function golden(name: string): string {
  return readFileSync(new URL(`../../test/golden/${name}.txt`, import.meta.url), 'utf8');
}

describe('the migrations of a cluster', () => {
  it('of shards', () => {
    expect(differences(SHARDS)).toBe(golden('shards'));
  });

  it('of shards with replicas', () => {
    expect(differences(REPLICAS)).toBe(golden('replicas'));
  });

  it('quote a name that needs it', () => {
    const [, leading] = inCluster(
      'CREATE TABLE IF NOT EXISTS a\n(\n    account_id String\n)\nENGINE = Log',
      "it's",
      SHARDS,
    );
    expect(leading?.sql).toBe(
      "CREATE TABLE IF NOT EXISTS a AS `it's_local`.a ENGINE = Distributed('prod', 'it\\'s_local', 'a', cityHash64(account_id))",
    );
  });

  it('change a column in both databases, and settings and projections in one', () => {
    const databases = (sql: string) => inCluster(sql, 'meterline', SHARDS).map(({ database }) => database);
    expect(databases('-- Why\nALTER TABLE a ADD COLUMN IF NOT EXISTS b UInt8')).toEqual(['local', 'distributed']);
    expect(databases('ALTER TABLE a MODIFY SETTING x = 1')).toEqual(['local']);
  });

  it('are refused for a table whose shards nobody has chosen', () => {
    expect(() => inCluster('CREATE TABLE IF NOT EXISTS a\n(\n    x UInt8\n)\nENGINE = Log', 'm', SHARDS)).toThrow(
      'table a has no account_id; name its shards',
    );
  });
});
