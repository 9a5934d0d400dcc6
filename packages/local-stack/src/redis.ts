import { Redis } from 'ioredis';
import { ensureRedisServer } from '../hosts/redis-binary.js';
import { openServerDirectory } from './data-directory.js';
import { LocalStackError } from './errors.js';
import { HostProcess } from './host-process.js';
import { findFreePort, isPortFree, LOOPBACK, requireFreePort } from './ports.js';
import type { RunningRedis } from './running-server.js';

/** Long, because a large append-only file is read before Redis answers anything but LOADING. */
const READY_DEADLINE_MS = 120_000;
const PROBE_TIMEOUT_MS = 5_000;
const PORT_ATTEMPTS = 5;

/**
 * A queue may lose nothing: every write is on disk before it is answered, and memory that runs out is an error rather
 * than an eviction. With `everysec` Redis may answer up to 2 s before it writes (aof.c, flushAppendOnlyFile), which even
 * `kill -9` then loses.
 */
const DURABLE = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];

export interface RedisOptions {
  /** The data goes to `<dataDir>/redis`, the log to `<dataDir>/redis.log`. */
  dataDir: string;
  /** Default: any free one. */
  port?: number | undefined;
  /** Told, one line each, what takes long, such as installing Redis. */
  say?: ((line: string) => void) | undefined;
}

/**
 * Starts a Redis on the loopback address that keeps what it has answered for: over a restart, `kill -9` and a power cut.
 *
 * @throws LocalStackError
 * @throws RedisUnavailableError if there is no redis-server and none can be installed
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const binary = await ensureRedisServer({ say: options.say });
  if (options.port !== undefined) await requireFreePort(options.port, 'Redis');

  for (let attempt = 1; ; attempt++) {
    const port = options.port ?? (await findFreePort());
    try {
      return await launch(binary, options.dataDir, port);
    } catch (error) {
      const failed = error instanceof LocalStackError && error.code === 'exited_early';
      const mayRetry = failed && options.port === undefined && attempt < PORT_ATTEMPTS;
      if (!mayRetry || (await isPortFree(port))) throw error;
    }
  }
}

async function launch(binary: string, dataDir: string, port: number): Promise<RunningRedis> {
  const { path, logFile, lock } = await openServerDirectory(dataDir, 'redis');
  try {
    const host = await HostProcess.start({
      name: 'Redis',
      script: 'lifeline.js',
      // Redis logs to its standard output, which the lifeline sends to the log file together with start-up errors.
      args: [binary, '--bind', LOOPBACK, '--port', String(port), '--dir', path, ...DURABLE],
      announcesPid: true,
      directory: path,
      logFile,
      lock,
    });
    const url = `redis://${LOOPBACK}:${port}`;
    await host.waitUntilReady(() => pingRedis(url), READY_DEADLINE_MS);
    return { ...host.describe(url), port };
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Asks a Redis whether it is up and has loaded its data; rejects with the reason if not. */
export async function pingRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: PROBE_TIMEOUT_MS,
    disconnectTimeout: 1,
  });
  // Why a connection failed is told here; the rejected command only says that there is none.
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    // While it loads its data this is an error, LOADING.
    await redis.ping();
  } catch (error) {
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}
