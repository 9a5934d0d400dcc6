/** The users of the embedded ClickHouse: its owner, and those of clickhouse/users.xml. */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';

const ROLES_FILE = fileURLToPath(new URL('../../../../clickhouse/users.xml', import.meta.url));

/** The users of clickhouse/users.xml, one for each kind of process. */
const ROLES = ['ingest', 'query', 'operator', 'migrate'] as const;
type Role = (typeof ROLES)[number];

/** Who started the stack, and so may do everything in databases. */
export const OWNER = 'meterline';

/** Of letters and digits. */
export type Passwords = Readonly<Record<Role | typeof OWNER, string>>;

/**
 * Everything that a person and the tests do in databases. Of sources outside of them (`file`, `url`, `remote`, other table
 * engines), of the server itself and of users: nothing.
 */
const PRIVILEGES = [
  'SHOW, SELECT, INSERT, ALTER, CREATE DATABASE, CREATE TABLE, CREATE VIEW, CREATE TEMPORARY TABLE ON *.*',
  'DROP, UNDROP TABLE, TRUNCATE, OPTIMIZE, CHECK, KILL QUERY, SYSTEM MERGES, SYSTEM FLUSH ON *.*',
  ...['MergeTree', 'ReplacingMergeTree', 'AggregatingMergeTree', 'CollapsingMergeTree', 'Log', 'Memory'].map(
    (name) => `TABLE ENGINE ON ${name}`,
  ),
];

/** Of the owner of a shard, for the tables that lead to all shards. */
const SHARD_PRIVILEGES = ['TABLE ENGINE ON Distributed', 'REMOTE ON *.*'];

/** Longer than any engine runs. ClickHouse cannot count to much more. */
const FOR_EVER_SECONDS = 2_000_000_000;

interface UsersOptions {
  /** The one that the roles are for. */
  readonly database: string;
  /** It also listens for other shards. */
  readonly isShard: boolean;
}

/**
 * `default` is the engine's own user, which needs no password: it opens the port and reads standard input, as a file, to
 * its end. Over HTTP it is refused to all who lack a password. To those who have one, its quota leaves only what reads no
 * table (`SELECT 1`) or system tables alone, which ClickHouse does not count: the start uses it up.
 */
export async function usersXml(passwords: Passwords, { database, isShard }: UsersOptions): Promise<string> {
  const privileges = isShard ? [...PRIVILEGES, ...SHARD_PRIVILEGES] : PRIVILEGES;
  return `<clickhouse>
    <profiles><default/></profiles>
    <quotas>
        <default/>
        <start><interval><duration>${FOR_EVER_SECONDS}</duration><queries>${isShard ? 3 : 2}</queries></interval></start>
    </quotas>
    <users>
        <default>
            <no_password/>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>default</profile>
            <quota>start</quota>
            <grants>
                <query>GRANT SYSTEM LISTEN ON *.*</query>
                <query>GRANT CREATE TEMPORARY TABLE ON *.*</query>
                <query>GRANT READ ON FILE</query>
            </grants>
        </default>
        <${OWNER}>
            ${hashOf(passwords[OWNER])}
            <profile>default</profile>
            <quota>default</quota>
            <grants>
                ${privileges.map((privilege) => `<query>GRANT ${privilege}</query>`).join('\n                ')}
            </grants>
        </${OWNER}>${rolesOf(await rolesFile(isShard), passwords, database)}
    </users>
</clickhouse>
`;
}

/** A server that is no shard lets nobody reach others. */
async function rolesFile(isShard: boolean): Promise<string> {
  const file = await readFile(ROLES_FILE, 'utf8');
  return isShard ? file : file.replaceAll('<query>GRANT REMOTE ON *.*</query>', '');
}

/** The roles of the file, with hashes of these passwords, for this database. */
function rolesOf(file: string, passwords: Passwords, database: string): string {
  const roles = /<users>(.*)<\/users>/s.exec(file)?.[1] ?? '';
  const withDatabase = roles
    .replaceAll(' ON meterline.', () => ` ON ${escapeXml(quoted(database))}.`)
    .replaceAll(' ON meterline_local.', () => ` ON ${escapeXml(quoted(`${database}_local`))}.`);
  return ROLES.reduce(
    (text, role) =>
      text.replace(`<password from_env="CLICKHOUSE_${role.toUpperCase()}_PASSWORD"/>`, () => hashOf(passwords[role])),
    withDatabase,
  );
}

function hashOf(password: string): string {
  return `<password_sha256_hex>${createHash('sha256').update(password).digest('hex')}</password_sha256_hex>`;
}

function quoted(identifier: string): string {
  return `\`${identifier.replace(/[\\`]/g, '\\$&')}\``;
}

export function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
