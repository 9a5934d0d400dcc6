/** The embedded ClickHouse: a real server from chdb's shared library, in a separate process. */
import { access, mkdir } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';
import { LocalStackError } from '../errors.js';
import type { DataDirectory } from './data-directory.js';
import { type RunningServer, startServer } from './host-process.js';
import { LOOPBACK, launchOnFreePorts, requireFreePort } from './ports.js';

const READY_DEADLINE_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;

/** The packages that hold the engine, as `chdb` lists them among its optional dependencies (there is none for musl). */
const ENGINE_PACKAGES: Readonly<Record<string, string>> = {
  'darwin-arm64': '@chdb/lib-darwin-arm64',
  'darwin-x64': '@chdb/lib-darwin-x64',
  'linux-arm64': '@chdb/lib-linux-arm64-gnu',
  'linux-x64': '@chdb/lib-linux-x64-gnu',
};

export interface RunningClickHouse extends RunningServer {
  readonly httpPort: number;
  readonly tcpPort: number;
}

export interface ClickHouseOptions {
  /** The data goes to `<dataDir>/clickhouse`, the log to `<dataDir>/clickhouse.log`. */
  dataDir: string | DataDirectory;
  /** Default: any free one. */
  httpPort?: number | undefined;
  /** Default: any free one. */
  tcpPort?: number | undefined;
  /** A ClickHouse configuration file, for `users_config` and `remote_servers`. */
  configFile?: string | undefined;
}

/**
 * Starts the embedded ClickHouse on the loopback address; user `default`, no password.
 *
 * @throws LocalStackError
 */
export async function startClickHouse(options: ClickHouseOptions): Promise<RunningClickHouse> {
  const library = findEngineLibrary();
  const { dataDir, configFile } = options;
  // The engine would silently go without a file that it cannot find.
  if (configFile !== undefined) await access(configFile);
  if (options.httpPort !== undefined) await requireFreePort(options.httpPort, 'ClickHouse (HTTP)');
  if (options.tcpPort !== undefined) await requireFreePort(options.tcpPort, 'ClickHouse (TCP)');

  return launchOnFreePorts(async (choose) => {
    const [httpPort, tcpPort] = [await choose(options.httpPort), await choose(options.tcpPort)];
    const url = `http://${LOOPBACK}:${httpPort}`;
    const server = await startServer(dataDir, async (directory) => {
      const path = directory.file('clickhouse');
      await mkdir(path, { recursive: true, mode: 0o700 });
      return {
        name: 'ClickHouse',
        label: 'clickhouse',
        script: 'engine.js',
        args: [
          library,
          ...['--path', path],
          ...['--http_port', String(httpPort)],
          ...['--tcp_port', String(tcpPort)],
          ...['--listen_host', LOOPBACK],
          ...(configFile === undefined ? [] : ['--config-file', resolve(configFile)]),
        ],
        announcesPid: false,
        cwd: path,
        url,
        answers: () => pingClickHouse(url),
        readyDeadlineMs: READY_DEADLINE_MS,
      };
    });
    return { ...server, httpPort, tcpPort };
  });
}

/**
 * Checks that a ClickHouse is up and runs statements.
 *
 * @throws LocalStackError `not_answering`
 */
async function pingClickHouse(url: string): Promise<void> {
  for (const path of ['/ping', '/?query=SELECT%201']) {
    const response = await fetch(new URL(path, url), {
      // ClickHouse shuts down in milliseconds, but waits for seconds while an idle connection is kept alive.
      headers: { connection: 'close' },
      signal: AbortSignal.timeout(PROBE_TIMEOUT_MS),
    });
    const body = await response.text();
    if (!response.ok) {
      throw new LocalStackError('not_answering', `ClickHouse answers ${response.status}: ${body.slice(0, 200)}`);
    }
  }
}

export interface Platform {
  platform: string;
  arch: string;
}

/**
 * The path of the engine's shared library on this machine.
 *
 * @param find finds a file of an installed package, or throws
 * @throws LocalStackError `unsupported_platform`
 */
export function findEngineLibrary(
  { platform, arch }: Platform = process,
  find: (file: string) => string = findBesideChdb,
): string {
  const key = `${platform}-${arch}`;
  const engine = ENGINE_PACKAGES[key];
  try {
    if (engine) return find(`${engine}/libchdb.so`);
  } catch (cause) {
    throw unsupported(`The embedded ClickHouse is not installed for ${key} (package ${engine} is missing)`, { cause });
  }
  throw unsupported(`There is no embedded ClickHouse for ${key}`);
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
