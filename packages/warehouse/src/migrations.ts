/** The schema's history as files: `NNNN_name.sql`, one statement each, numbered from 0001 without a gap. */
import { createHash } from 'node:crypto';
import { readdir, readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { fileURLToPath } from 'node:url';

export interface Migration {
  readonly version: number;
  /** The file's name. */
  readonly name: string;
  readonly sql: string;
  /** SHA-256 of the text, hexadecimal; line endings do not count. */
  readonly checksum: string;
}

/** The migrations, or what the database says of them, cannot be trusted; the message names the file. */
export class MigrationError extends Error {
  override readonly name = 'MigrationError';
}

export const MIGRATIONS_DIRECTORY = fileURLToPath(new URL('../../../clickhouse/migrations/', import.meta.url));

const FILE_NAME = /^(\d{4})_[a-z0-9_]+\.sql$/;

/**
 * ClickHouse has no lock to take: two processes that start at once run the same files at once, and a crash may fall
 * between a statement and its record. Both are harmless when a statement changes nothing the second time.
 */
const REPEATABLE =
  /^(CREATE (TABLE|VIEW|DICTIONARY) IF NOT EXISTS|ALTER TABLE \S+ \w+ \w+ IF (NOT )?EXISTS|DROP \w+ IF EXISTS)\s/i;

export async function readMigrations(directory: string): Promise<Migration[]> {
  const names = (await readdir(directory)).filter((name) => name.endsWith('.sql')).sort();
  return Promise.all(names.map((name, index) => readMigration(directory, name, index + 1)));
}

async function readMigration(directory: string, name: string, expected: number): Promise<Migration> {
  const version = Number(FILE_NAME.exec(basename(name))?.[1]);
  if (version !== expected) {
    throw new MigrationError(`migration ${name} is out of order: expected number ${String(expected).padStart(4, '0')}`);
  }
  const sql = (await readFile(`${directory}/${name}`, 'utf8')).replaceAll('\r\n', '\n');
  if (!isRepeatable(withoutComments(sql))) {
    throw new MigrationError(`migration ${name} must be one statement with IF NOT EXISTS or IF EXISTS`);
  }
  return { version, name, sql, checksum: createHash('sha256').update(sql).digest('hex') };
}

/** Each part of an ALTER needs its own IF, so it may have one part only: no comma outside of parentheses. */
function isRepeatable(statement: string): boolean {
  return REPEATABLE.test(statement) && !(/^ALTER/i.test(statement) && withoutParentheses(statement).includes(','));
}

function withoutParentheses(text: string): string {
  const shorter = text.replace(/\([^()]*\)/g, '');
  return shorter === text ? text : withoutParentheses(shorter);
}

function withoutComments(sql: string): string {
  return sql.replace(/^\s*--.*$/gm, '').trimStart();
}
