/**
 * Builds the configuration of the embedded ClickHouse: its users and its HTTP rules. Every user and every web page on this machine can
 * reach the port of the server, so the HTTP rules restrict the requests.
 */
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { passwordOf } from './data-directory.js';
import { LOOPBACK } from './ports.js';

const ROLES_FILE = fileURLToPath(new URL('../../../clickhouse/users.xml', import.meta.url));

export const OWNER = 'meterline';

/** Passwords of the owner and of the users in clickhouse/users.xml. A password contains only letters and digits. */
export type Passwords = ReturnType<typeof passwordsFrom>;

export function passwordsFrom(secret: string) {
  const of = (user: string) => passwordOf(secret, `clickhouse ${user}`);
  const roles = { ingest: of('ingest'), query: of('query'), operator: of('operator'), migrate: of('migrate') };
  return { [OWNER]: of(OWNER), ...roles } as const;
}

const MEBIBYTE = 1024 * 1024;

/**
 * Minimum free disk space in bytes. Below the first limit, ClickHouse rejects inserts and starts no merges, so jobs wait in the queue.
 * Below the second limit, the engine process ends itself, because it would not notice that running writes fail (docs/decisions/0026).
 */
export const FREE_SPACE = { rejectsBelow: 256 * MEBIBYTE, endsBelow: 128 * MEBIBYTE } as const;

export const CLUSTER = 'meterline';

/** An embedded engine in a cluster. Each engine is one shard, which stores the events of some of the accounts, with one replica. */
export interface Shard {
  readonly number: number;
  /** Ports for connections between the shards. The list includes the port of this shard. */
  readonly tcpPorts: readonly number[];
}

/** Allowed Host headers. They prevent DNS rebinding: a web page whose domain resolves to 127.0.0.1 sends its own domain as Host. */
const OWN_HOST = String.raw`regex:(127\.0\.0\.1|localhost)(:[0-9]+)?`;

/** The message has the format of ClickHouse's errors, so that clients recognize the error code. */
const UNAUTHENTICATED =
  'Code: 516. DB::Exception: Authentication failed: use clickhouseUser and clickhousePassword of local.json for HTTP basic ' +
  'authentication. (AUTHENTICATION_FAILED)';

export function basicAuthorization(user: string, password: string): string {
  return `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
}

/**
 * Returns the server configuration: access control as strict as in a default server, limits for one machine, and the HTTP rules.
 * @param usersFile absolute path of the users file
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
    <!-- For a machine with few processors. The default of 16 threads allows 32 concurrent merges. -->
    <background_pool_size>4</background_pool_size>
    <merge_tree>
        <number_of_free_entries_in_pool_to_lower_max_size_of_merge>2</number_of_free_entries_in_pool_to_lower_max_size_of_merge>
        <number_of_free_entries_in_pool_to_execute_mutation>2</number_of_free_entries_in_pool_to_execute_mutation>
        <number_of_free_entries_in_pool_to_execute_optimize_entire_partition>2</number_of_free_entries_in_pool_to_execute_optimize_entire_partition>
        <min_free_disk_bytes_to_perform_insert>${FREE_SPACE.rejectsBelow}</min_free_disk_bytes_to_perform_insert>
    </merge_tree>
    <storage_configuration>
        <disks><default><keep_free_space_bytes>${FREE_SPACE.rejectsBelow}</keep_free_space_bytes></default></disks>
    </storage_configuration>
    ${shard ? clusterXml(shard, passwords) : ''}
    <!-- The first matching rule applies. -->
    <http_handlers>
        <rule>
            <headers><Origin>regex:.+</Origin></headers>
            ${response(403, 'Requests with an Origin header are rejected.')}
        </rule>
        <rule>
            <url>/ping</url>
            <headers><Host>${OWN_HOST}</Host></headers>
            ${response(200, 'Ok.')}
        </rule>
        <!-- The rules match complete credentials: without a password, nobody can use the engine's internal user. -->
        ${Object.entries(passwords).map(statementRule).join('\n        ')}
        <rule>
            <headers><Host>${OWN_HOST}</Host></headers>
            ${response(401, UNAUTHENTICATED)}
        </rule>
        <rule>
            ${response(403, 'The Host header must be 127.0.0.1 or localhost.')}
        </rule>
    </http_handlers>
</clickhouse>
`;
}

/** Configures the cluster. With the shared secret, a shard can run a statement of another shard as the user who sent it. */
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
    <!-- Shows which shards ran a query. -->
    <query_log>
        <database>system</database>
        <table>query_log</table>
        <ttl>event_date + INTERVAL 1 DAY</ttl>
    </query_log>
    <macros><shard>${number}</shard><replica>1</replica></macros>
    <remote_url_allow_hosts><host>${LOOPBACK}</host></remote_url_allow_hosts>`;
}

/** Lets a user run statements. HTTP basic authentication is the only way to log in. */
function statementRule([user, password]: readonly [string, string]): string {
  return `<rule>
            <headers><Host>${OWN_HOST}</Host><Authorization>${basicAuthorization(user, password)}</Authorization></headers>
            <handler><type>dynamic_query_handler</type><query_param_name>query</query_param_name></handler>
        </rule>`;
}

function response(status: number, text: string): string {
  return `<handler><type>static</type><status>${status}</status><response_content>${text}\n</response_content></handler>`;
}

/** 63 years, so that the quota never resets. ClickHouse does not support much longer intervals. */
const FOREVER_SECONDS = 2_000_000_000;

interface UsersOptions {
  readonly database: string;
  readonly isShard: boolean;
  readonly profile: Readonly<Record<string, string>>;
}

/**
 * Returns the users file. The owner has all rights except the right to create users.
 *
 * The engine has an internal user, `default`, without a password. When the engine starts, this user opens the ports and then reads standard
 * input until its end. The HTTP rules reject requests without a password, but a user with a password can switch to `default` with a URL
 * parameter. The quota therefore allows exactly the statements of the start. After the start, `default` can only run statements that
 * ClickHouse does not count: statements that read no table (`SELECT 1`) or only system tables.
 */
export async function usersXml(passwords: Passwords, { database, isShard, profile }: UsersOptions): Promise<string> {
  const settings = Object.entries(profile).map(([name, value]) => `<${name}>${escapeXml(value)}</${name}>`);
  return `<clickhouse>
    <profiles><default/><users>${settings.join('')}</users></profiles>
    <quotas>
        <default/>
        <start><interval><duration>${FOREVER_SECONDS}</duration><queries>${isShard ? 3 : 2}</queries></interval></start>
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

/** Reads clickhouse/users.xml. A single server does not need the right to connect to other servers, so that right is removed. */
async function rolesFile(isShard: boolean): Promise<string> {
  const file = await readFile(ROLES_FILE, 'utf8');
  return isShard ? file : file.replaceAll('<query>GRANT REMOTE ON *.*</query>', '');
}

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
