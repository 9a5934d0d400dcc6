/** Starts the embedded ClickHouse, a real server from the shared library of chdb, in a separate process. */
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

/** Variables for the engine. It does not get the developer's other variables, because users with insert rights can read its environment. */
const ENVIRONMENT = Object.fromEntries(
  ['PATH', 'TZ', 'LD_LIBRARY_PATH'].map((name) => [name, process.env[name]] as const),
);

export interface RunningClickHouse extends RunningServer {
  readonly httpPort: number;
  readonly user: typeof OWNER;
  readonly password: string;
  /** Passwords of all users. A stack that restarts with the same data directory has the same passwords. */
  readonly passwords: Passwords;
}

export interface ClickHouseOptions {
  /** The directory for the data (`clickhouse`), the log (`clickhouse.log`), and the configuration, which contains the passwords. */
  dataDir: DataDirectory;
  /** Database that the users of clickhouse/users.xml can access (default: meterline). */
  database?: string | undefined;
  profile?: Readonly<Record<string, string>> | undefined;
  /** Position in the cluster. Each shard has its own data, configuration and log. */
  shard?: Shard | undefined;
}

/** Starts the embedded ClickHouse on the loopback address. @throws LocalStackError */
export async function startClickHouse(options: ClickHouseOptions): Promise<RunningClickHouse> {
  const library = findEngineLibrary();
  const { dataDir: directory, shard, database = DATABASE, profile = {} } = options;
  const label = engineLabel(shard?.number);
  const path = directory.file(label);
  await mkdir(path, { recursive: true, mode: 0o700 });
  const passwords = passwordsFrom(directory.secret);
  const [config, users] = [directory.file(`${label}-config.xml`), directory.file(`${label}-users.xml`)];
  // The configuration is passed in files, because every user of the machine can read the arguments of a process.
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
      stopsAt: 'end of input',
      cwd: path,
      env: ENVIRONMENT,
      url,
      isReady: () => pingClickHouse(url, passwords[OWNER]),
    });
    return { ...server, httpPort, user: OWNER, password: passwords[OWNER], passwords };
  });
}

/** Returns the name of an engine's data folder, which is also the prefix of its other files. */
export function engineLabel(shard: number | undefined): string {
  return shard === undefined ? 'clickhouse' : `clickhouse-shard-${shard}`;
}

async function pingClickHouse(url: string, password: string): Promise<void> {
  const authorization = basicAuthorization(OWNER, password);
  const { status, text } = await probe(new URL('/?query=SELECT%201', url), { authorization });
  if (status !== 200) throw new LocalStackError(`ClickHouse responds with ${status}: ${text.slice(0, 200)}`);
}

/**
 * Returns the path of the engine's shared library.
 * @param env may override the path. Empty by default, so that the developer's environment has no effect.
 * @throws LocalStackError if there is no library for this platform
 */
export function findEngineLibrary(env: NodeJS.ProcessEnv = {}): string {
  try {
    return libchdbPath({ env });
  } catch (cause) {
    const fix =
      'The embedded ClickHouse supports macOS, and Linux with glibc. On other systems, set CLICKHOUSE_URL to your own server.';
    throw new LocalStackError(`${errorMessage(cause)}. ${fix}`, { cause });
  }
}
