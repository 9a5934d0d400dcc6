/** The embedded ClickHouse: a real server from chdb's shared library, in a separate process. */
import { mkdir } from 'node:fs/promises';
import { writePrivateText } from '@meterline/service/files';
import { libchdbPath } from 'chdb/libchdb';
import {
  basicAuthorization,
  configXml,
  FREE_SPACE,
  OWNER,
  type Passwords,
  passwordsFrom,
  type Shard,
  usersXml,
} from './clickhouse-config.js';
import type { DataDirectory } from './data-directory.js';
import { errorMessage, LocalStackError } from './errors.js';
import { LOOPBACK, launchOnPort } from './ports.js';
import { ENGINE_PROGRAM, probe, type RunningServer, startServer } from './server-process.js';

const DATABASE = 'meterline';

/** None of the developer's other variables: what the engine can read, everybody can who may insert. */
const ENVIRONMENT = Object.fromEntries(
  ['PATH', 'TZ', 'LD_LIBRARY_PATH'].map((name) => [name, process.env[name]] as const),
);

export interface RunningClickHouse extends RunningServer {
  readonly httpPort: number;
  /** May do everything. */
  readonly user: typeof OWNER;
  readonly password: string;
  /** The passwords of all users; the same at every start in a data directory. */
  readonly passwords: Passwords;
}

export interface ClickHouseOptions {
  /** The data goes to `<dataDir>/clickhouse`, the log to `<dataDir>/clickhouse.log`; configuration and password stay in it. */
  dataDir: DataDirectory;
  /** The one that the roles of clickhouse/users.xml are for. Default: meterline. */
  database?: string | undefined;
  /** Settings of every user's profile, by name. Default: none. */
  profile?: Readonly<Record<string, string>> | undefined;
  /** It is one shard of a cluster; data, configuration and log have names of their own. */
  shard?: Shard | undefined;
}

/**
 * Starts the embedded ClickHouse on the loopback address, for its owner and the users of clickhouse/users.xml.
 *
 * @throws LocalStackError
 */
export async function startClickHouse(options: ClickHouseOptions): Promise<RunningClickHouse> {
  const library = findEngineLibrary();
  const { dataDir: directory, shard, database = DATABASE, profile = {} } = options;
  const label = engineLabel(shard?.number);
  const path = directory.file(label);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const passwords = passwordsFrom(directory.secret);
  const [config, users] = [directory.file(`${label}-config.xml`), directory.file(`${label}-users.xml`)];
  // In files, because every user of the machine can read the arguments of a process.
  await writePrivateText(users, await usersXml(passwords, { database, isShard: shard !== undefined, profile }));
  await writePrivateText(config, configXml(users, passwords, shard));
  return launchOnPort(async (httpPort) => {
    const url = `http://${LOOPBACK}:${httpPort}`;
    const server = await startServer(directory, {
      name: shard ? `ClickHouse shard ${shard.number}` : 'ClickHouse',
      label,
      args: [
        ...[ENGINE_PROGRAM, library, String(FREE_SPACE.endsBelow), '--config-file', config],
        ...['--http_port', String(httpPort), '--listen_host', LOOPBACK],
        ...(shard ? ['--tcp_port', String(shard.tcpPorts[shard.number - 1])] : []),
      ],
      ends: 'input',
      cwd: path,
      env: ENVIRONMENT,
      url,
      isReady: () => pingClickHouse(url, passwords[OWNER]),
    });
    return { ...server, httpPort, user: OWNER, password: passwords[OWNER], passwords };
  });
}

/** The folder of an engine's data, and part of the names of its other files. @param shard its number; undefined: it is none */
export function engineLabel(shard: number | undefined): string {
  return shard === undefined ? 'clickhouse' : `clickhouse-shard-${shard}`;
}

/** Checks that a ClickHouse is up and runs statements. @throws LocalStackError */
async function pingClickHouse(url: string, password: string): Promise<void> {
  for (const path of ['/ping', '/?query=SELECT%201']) {
    const { status, text } = await probe(new URL(path, url), { authorization: basicAuthorization(OWNER, password) });
    if (status !== 200) throw new LocalStackError(`ClickHouse answers ${status}: ${text.slice(0, 200)}`);
  }
}

/** The engine's shared library on this machine. @param env may name another, which a developer's own must not @throws LocalStackError */
export function findEngineLibrary(env: NodeJS.ProcessEnv = {}): string {
  try {
    return libchdbPath({ env });
  } catch (cause) {
    const otherwise =
      'The embedded ClickHouse exists for macOS and for Linux with glibc; elsewhere set CLICKHOUSE_URL to a server of your own.';
    throw new LocalStackError(`${errorMessage(cause)}. ${otherwise}`, { cause });
  }
}
