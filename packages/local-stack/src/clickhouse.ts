import { access } from 'node:fs/promises';
import { resolve } from 'node:path';
import { openServerDirectory } from './data-directory.js';
import { findEngineLibrary } from './engine-library.js';
import { LocalStackError } from './errors.js';
import { HostProcess } from './host-process.js';
import { findFreePort, isPortFree, LOOPBACK, requireFreePort } from './ports.js';
import type { RunningClickHouse } from './running-server.js';

const READY_DEADLINE_MS = 30_000;
const PROBE_TIMEOUT_MS = 5_000;
const PORT_ATTEMPTS = 5;

export interface ClickHouseOptions {
  /** The data goes to `<dataDir>/clickhouse`, the log to `<dataDir>/clickhouse.log`. */
  dataDir: string;
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
  // The engine would silently go without a file that it cannot find.
  if (options.configFile !== undefined) await access(options.configFile);
  if (options.httpPort !== undefined) await requireFreePort(options.httpPort, 'ClickHouse (HTTP)');
  if (options.tcpPort !== undefined) await requireFreePort(options.tcpPort, 'ClickHouse (TCP)');

  for (let attempt = 1; ; attempt++) {
    const httpPort = options.httpPort ?? (await findFreePort());
    const tcpPort = options.tcpPort ?? (await findFreePort());
    try {
      return await launch(library, options, httpPort, tcpPort);
    } catch (error) {
      const failed = error instanceof LocalStackError && error.code === 'exited_early';
      if (!failed || attempt === PORT_ATTEMPTS) throw error;
      const taken =
        (options.httpPort === undefined && !(await isPortFree(httpPort))) ||
        (options.tcpPort === undefined && !(await isPortFree(tcpPort)));
      if (!taken) throw error;
    }
  }
}

async function launch(
  library: string,
  { dataDir, configFile }: ClickHouseOptions,
  httpPort: number,
  tcpPort: number,
): Promise<RunningClickHouse> {
  const { path, logFile, lock } = await openServerDirectory(dataDir, 'clickhouse');
  try {
    const host = await HostProcess.start({
      name: 'ClickHouse',
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
      directory: path,
      logFile,
      lock,
    });
    const url = `http://${LOOPBACK}:${httpPort}`;
    await host.waitUntilReady(() => pingClickHouse(url), READY_DEADLINE_MS);
    return { ...host.describe(url), httpPort, tcpPort };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/**
 * Asks a ClickHouse whether it is up and runs statements.
 *
 * @throws LocalStackError `not_answering`
 */
export async function pingClickHouse(url: string): Promise<void> {
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
