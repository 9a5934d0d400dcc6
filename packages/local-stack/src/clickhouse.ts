/** The embedded ClickHouse: a real server from chdb's shared library, in a separate process. */
import { mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { writePrivateText } from '@meterline/service/files';
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
import { LocalStackError } from './errors.js';
import { LOOPBACK, launchOnPort } from './ports.js';
import { probe, programFile, type RunningServer, startServer } from './server-process.js';

const DATABASE = 'meterline';
const READY_TIMEOUT_MS = 30_000;

/** None of the developer's other variables: what the engine can read, everybody can who may insert. */
const ENVIRONMENT = Object.fromEntries(
  ['PATH', 'TZ', 'LD_LIBRARY_PATH'].map((name) => [name, process.env[name]] as const),
);

/** The packages that hold the engine, as `chdb` lists them among its optional dependencies (there is none for musl). */
const ENGINE_PACKAGES: Readonly<Record<string, string>> = {
  'darwin-arm64': '@chdb/lib-darwin-arm64',
  'darwin-x64': '@chdb/lib-darwin-x64',
  'linux-arm64': '@chdb/lib-linux-arm64-gnu',
  'linux-x64': '@chdb/lib-linux-x64-gnu',
};

export interface RunningClickHouse extends RunningServer {
  readonly httpPort: number;
  /** What it is started with again; undefined: one server. */
  readonly shard: Shard | undefined;
  /** May do everything. */
  readonly user: typeof OWNER;
  readonly password: string;
  /** Of all users; the same at every start in a data directory. */
  readonly passwords: Passwords;
}

export interface ClickHouseOptions {
  /** The data goes to `<dataDir>/clickhouse`, the log to `<dataDir>/clickhouse.log`; configuration and password stay in it. */
  dataDir: string | DataDirectory;
  /** Default: any free one. */
  httpPort?: number | undefined;
  /** The one that the roles of clickhouse/users.xml are for. Default: meterline. */
  database?: string | undefined;
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
  const { dataDir, shard, database = DATABASE } = options;
  const label = engineLabel(shard?.number);
  return launchOnPort(options.httpPort, 'ClickHouse (HTTP)', async (httpPort) => {
    const url = `http://${LOOPBACK}:${httpPort}`;
    const server = await startServer(dataDir, async (directory) => {
      const path = directory.file(label);
      await mkdir(path, { recursive: true, mode: 0o700 });
      const passwords = passwordsFrom(directory.secret);
      const [config, users] = [directory.file(`${label}-config.xml`), directory.file(`${label}-users.xml`)];
      // In files, because every user of the machine can read the arguments of a process.
      await writePrivateText(users, await usersXml(passwords, { database, isShard: shard !== undefined }));
      await writePrivateText(config, configXml(users, passwords, shard));
      return {
        name: shard ? `ClickHouse shard ${shard.number}` : 'ClickHouse',
        label,
        args: [
          ...[programFile('engine'), library, String(FREE_SPACE.endsBelow), '--config-file', config],
          ...['--http_port', String(httpPort), '--listen_host', LOOPBACK],
          ...(shard ? ['--tcp_port', String(shard.tcpPorts[shard.number - 1])] : []),
        ],
        ends: 'input',
        cwd: path,
        env: ENVIRONMENT,
        url,
        answers: () => pingClickHouse(url, passwords[OWNER]),
        readyTimeoutMs: READY_TIMEOUT_MS,
      };
    });
    const passwords = passwordsFrom(server.secret);
    return { ...server, httpPort, shard, user: OWNER, password: passwords[OWNER], passwords };
  });
}

/** The folder of an engine's data, and part of the names of its other files. @param shard its number; undefined: it is none */
export function engineLabel(shard: number | undefined): string {
  return shard === undefined ? 'clickhouse' : `clickhouse-shard-${shard}`;
}

/**
 * Checks that a ClickHouse is up and runs statements.
 *
 * @throws LocalStackError `not_answering`
 */
async function pingClickHouse(url: string, password: string): Promise<void> {
  for (const path of ['/ping', '/?query=SELECT%201']) {
    const { status, text } = await probe(new URL(path, url), { authorization: basicAuthorization(OWNER, password) });
    if (status !== 200)
      throw new LocalStackError('not_answering', `ClickHouse answers ${status}: ${text.slice(0, 200)}`);
  }
}

/**
 * The path of the engine's shared library on this machine.
 *
 * @param find finds a file of an installed package, or throws
 * @throws LocalStackError `unsupported_platform`
 */
export function findEngineLibrary(
  { platform, arch }: Pick<NodeJS.Process, 'platform' | 'arch'> = process,
  find: (file: string) => string = findBesideChdb,
): string {
  const engine = ENGINE_PACKAGES[`${platform}-${arch}`];
  try {
    if (engine) return find(`${engine}/libchdb.so`);
  } catch (cause) {
    throw unsupported(`${engine}, the embedded ClickHouse, is not installed`, { cause });
  }
  throw unsupported(`There is no embedded ClickHouse for ${platform}-${arch}`);
}

/** The engine is chdb's dependency, not ours, so it is looked up from there. */
function findBesideChdb(file: string): string {
  const chdb = createRequire(import.meta.url).resolve('chdb');
  return createRequire(chdb).resolve(file);
}

function unsupported(problem: string, options?: ErrorOptions): LocalStackError {
  const platforms = Object.keys(ENGINE_PACKAGES).sort().join(', ');
  return new LocalStackError(
    'unsupported_platform',
    `${problem}. It exists for ${platforms} (Linux with glibc); elsewhere set CLICKHOUSE_URL to a server of your own.`,
    options,
  );
}
