/**
 * The configuration of the embedded ClickHouse: which requests it answers, since every user and every web page of the machine reaches its
 * port, and its users, which are its owner and those of clickhouse/users.xml.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { passwordOf } from './data-directory.js';
import { LOOPBACK } from './ports.js';

const ROLES_FILE = fileURLToPath(new URL('../../../clickhouse/users.xml', import.meta.url));

/** Who started the stack, and so may do everything. */
export const OWNER = 'meterline';

/** Passwords of letters and digits: of the owner, and of the users of clickhouse/users.xml, one for each kind of process. */
export type Passwords = ReturnType<typeof passwordsFrom>;

export function passwordsFrom(secret: string) {
  const of = (user: string) => passwordOf(secret, `clickhouse ${user}`);
  const roles = { ingest: of('ingest'), query: of('query'), operator: of('operator'), migrate: of('migrate') };
  return { [OWNER]: of(OWNER), ...roles } as const;
}

const MEBIBYTE = 1024 * 1024;

/**
 * Bytes that the disk must have left. Below the first limit the engine takes no insert and begins no merge, so jobs wait in the
 * queue. Below the second it ends itself: what is under way then would not be written, and it would not notice
 * (docs/decisions/0026).
 */
export const FREE_SPACE = { refusesBelow: 256 * MEBIBYTE, endsBelow: 128 * MEBIBYTE } as const;

/** The name of the cluster that several embedded engines make. */
export const CLUSTER = 'meterline';

/** One embedded engine of several, each of them a shard with one replica. */
export interface Shard {
  /** From 1 on. */
  readonly number: number;
  /** Where each shard listens for the others, this one included. */
  readonly tcpPorts: readonly number[];
}

/** The Host headers that this machine's own programs send; a page that a foreign name leads to this address sends that name. */
const OWN_HOST = String.raw`regex:(127\.0\.0\.1|localhost)(:[0-9]+)?`;

/** In the form of ClickHouse's errors, so that clients recognise its code. */
const NO_USER =
  'Code: 516. DB::Exception: Authentication failed: send clickhouseUser and clickhousePassword of local.json as HTTP basic ' +
  'authentication. (AUTHENTICATION_FAILED)';

/** The header that a user sends. */
export function basicAuthorization(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/**
 * The rights that a usual server asks for, and the rules of the port.
 *
 * @param usersFile absolute path of the users
 */
export function configXml(usersFile: string, passwords: Passwords, shard?: Shard): string {
  return `<clickhouse>
    <users_config>${escapeXml(usersFile)}</users_config>
    <access_control_improvements>
        <users_without_row_policies_can_read_rows>true</users_without_row_policies_can_read_rows>
        <table_engines_require_grant>true</table_engines_require_grant>
        <select_from_system_db_requires_grant>true</select_from_system_db_requires_grant>
        <select_from_information_schema_requires_grant>true</select_from_information_schema_requires_grant>
    </access_control_improvements>
    <!-- For the few processors of one machine: sixteen, its default, may hold thirty-two merges at once. -->
    <background_pool_size>4</background_pool_size>
    <merge_tree>
        <number_of_free_entries_in_pool_to_lower_max_size_of_merge>2</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
        <number_of_free_entries_in_pool_to_execute_mutation>2</number_of_free_entries_in_pool_to_execute_mutation>
        <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>2</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
        <min_free_disk_bytes_to_perform_insert>${FREE_SPACE.refusesBelow}</min_free_disk_bytes_to_perform_insert>
    </merge_tree>
    <storage_configuration>
        <disks><default><keep_free_space_bytes>${FREE_SPACE.refusesBelow}</keep_free_space_bytes></default></disks>
    </storage_configuration>
    ${shard ? clusterXml(shard, passwords) : ''}
    <!-- The first rule that fits decides. -->
    <http_handlers>
        <rule>
            <headers><Origin>regex:.+</Origin></headers>
            ${response(403, 'Web pages of other origins are refused.')}
        </rule>
        <rule>
            <url>/ping</url>
            <headers><Host>${OWN_HOST}</Host></headers>
            ${response(200, 'Ok.')}
        </rule>
        <!-- Whole credentials, not the name alone: without them nobody reaches any user, not even the engine's own. -->
        ${Object.entries(passwords).flatMap(statementsOf).join('\n        ')}
        <rule>
            <headers><Host>${OWN_HOST}</Host></headers>
            ${response(401, NO_USER)}
        </rule>
        <rule>
            ${response(403, 'Only 127.0.0.1 and localhost are accepted as Host.')}
        </rule>
    </http_handlers>
</clickhouse>
`;
}

/** With a secret in common the shards run each other's statements as the user who has sent them. */
function clusterXml({ number, tcpPorts }: Shard, passwords: Passwords): string {
  const secret = createHash('sha256').update(`cluster ${passwords[OWNER]}`).digest('hex');
  const shards = tcpPorts.map(
    (port) => `<shard>
                <internal_replication>true</internal_replication>
                <replica><host>${LOOPBACK}</host><port>${port}</port></replica>
            </shard>`,
  );
  return `<remote_servers>
        <${CLUSTER}>
            <secret>${secret}</secret>
            ${shards.join('\n            ')}
        </${CLUSTER}>
    </remote_servers>
    <!-- Shows which shards a query was asked of. -->
    <query_log>
        <database>system</database>
        <table>query_log</table>
        <ttl>event_date + INTERVAL 1 DAY</ttl>
    </query_log>
    <macros><shard>${number}</shard><replica>1</replica></macros>
    <remote_url_allow_hosts><host>${LOOPBACK}</host></remote_url_allow_hosts>`;
}

/** The two ways in which a user may send its credentials. */
function statementsOf([user, password]: readonly [string, string]): string[] {
  return [
    `<Authorization>${basicAuthorization(user, password)}</Authorization>`,
    `<X-ClickHouse-User>${user}</X-ClickHouse-User><X-ClickHouse-Key>${password}</X-ClickHouse-Key>`,
  ].map(
    (credentials) => `<rule>
            <headers><Host>${OWN_HOST}</Host>${credentials}</headers>
            <handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>
        </rule>`,
  );
}

function response(status: number, text: string): string {
  return `<handler><type>static</type><status>${status}</status><response_content>${text}\n</response_content></handler>`;
}

/** Longer than any engine runs. ClickHouse cannot count to much more. */
const FOR_EVER_SECONDS = 2_000_000_000;

interface UsersOptions {
  /** The one that the roles are for. */
  readonly database: string;
  /** It reaches other shards. */
  readonly isShard: boolean;
  /** Settings of the profile of every user, by name. */
  readonly profile: Readonly<Record<string, string>>;
}

/**
 * The owner may do everything but make other users. `default` is the engine's own user, which needs no password: it opens the port and
 * reads standard input, as a file, to its end. Over HTTP it is refused to all who lack a password. To those who have one, its quota leaves
 * only what reads no table (`SELECT 1`) or system tables alone, which ClickHouse does not count: the start uses it up.
 */
export async function usersXml(passwords: Passwords, { database, isShard, profile }: UsersOptions): Promise<string> {
  const settings = Object.entries(profile).map(([name, value]) => `<${name}>${escapeXml(value)}</${name}>`);
  return `<clickhouse>
    <profiles><default/><users>${settings.join('')}</users></profiles>
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
            <profile>users</profile>
            <quota>default</quota>
        </${OWNER}>${rolesOf(await rolesFile(isShard), passwords, database)}
    </users>
</clickhouse>
`;
}

/** Where there is one server, no role reaches others. */
async function rolesFile(isShard: boolean): Promise<string> {
  const file = await readFile(ROLES_FILE, 'utf8');
  return isShard ? file : file.replaceAll('<query>GRANT REMOTE ON *.*</query>', '');
}

/** The roles of the file, with hashes of these passwords, for this database. */
function rolesOf(file: string, passwords: Passwords, database: string): string {
  const roles = /<users>(.*)<\/users>/s.exec(file)?.[1] ?? '';
  const withDatabase = roles
    .replaceAll('<profile>default</profile>', '<profile>users</profile>')
    .replaceAll(' ON meterline.', () => ` ON ${escapeXml(quoted(database))}.`)
    .replaceAll(' ON meterline_local.', () => ` ON ${escapeXml(quoted(`${database}_local`))}.`);
  return Object.entries(passwords).reduce(
    (text, [user, password]) =>
      text.replace(`<password from_env="CLICKHOUSE_${user.toUpperCase()}_PASSWORD"/>`, () => hashOf(password)),
    withDatabase,
  );
}

function hashOf(password: string): string {
  return `<password_sha256_hex>${createHash('sha256').update(password).digest('hex')}</password_sha256_hex>`;
}

function quoted(identifier: string): string {
  return `\`${identifier.replace(/[\\`]/g, '\\$&')}\``;
}

function escapeXml(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
