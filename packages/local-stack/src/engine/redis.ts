import { mkdir } from 'node:fs/promises';
import { QUEUE_PREFIX } from '@meterline/catalog';
import { writePrivateText } from '@meterline/service/private-file';
import { Redis } from 'ioredis';
import { ensureRedisServer } from '../../hosts/redis-binary.js';
import type { DataDirectory } from './data-directory.js';
import { type RunningServer, startServer } from './host-process.js';
import { LOOPBACK, launchOnFreePorts, requireFreePort } from './ports.js';
import { ensureRedisPasswords, type RedisUser, redisUsers } from './redis-users.js';
import { ensurePassword } from './secrets.js';

/** Long, because a large append-only file is read before Redis answers anything but LOADING. */
const READY_DEADLINE_MS = 120_000;
const PROBE_TIMEOUT_MS = 5_000;

/**
 * A queue may lose nothing: every write is on disk before it is answered, and memory that runs out is an error rather
 * than an eviction. With `everysec` Redis may answer up to 2 s before it writes (aof.c, flushAppendOnlyFile), which even
 * `kill -9` then loses.
 */
const DURABLE = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];

/** `url` has the owner's password. Passwords are the same at every start in a data directory. */
export interface RunningRedis extends RunningServer {
  readonly port: number;
  /** The address for a user with few rights. */
  readonly urls: Readonly<Record<RedisUser, string>>;
}

export interface RedisOptions {
  /** The data goes to `<dataDir>/redis`, the log to `<dataDir>/redis.log`; configuration and password stay in it. */
  dataDir: string | DataDirectory;
  /** Default: any free one. */
  port?: number | undefined;
  /** Of the queues that workers and producers may use. Default: BullMQ's own. */
  queuePrefix?: string | undefined;
  /** Called with one line before a step that takes long, such as installing Redis. */
  say?: ((line: string) => void) | undefined;
}

/**
 * Starts a Redis on the loopback address that keeps every acknowledged write over a restart, `kill -9` and a power cut.
 *
 * @throws LocalStackError
 * @throws RedisUnavailableError if there is no redis-server and none can be installed
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const binary = await ensureRedisServer({ say: options.say });
  if (options.port !== undefined) await requireFreePort(options.port, 'Redis');

  return launchOnFreePorts(async (choose) => {
    const port = await choose(options.port);
    let url = '';
    const server = await startServer(options.dataDir, async (directory) => {
      const path = directory.file('redis');
      await mkdir(path, { recursive: true, mode: 0o700 });
      const password = await ensurePassword(directory.file('redis-password.json'));
      // A file, because every user of the machine can read the arguments of a process.
      const configuration = directory.file('redis.conf');
      const passwords = await ensureRedisPasswords(directory.path);
      const users = await redisUsers(passwords, options.queuePrefix ?? QUEUE_PREFIX);
      await writePrivateText(configuration, `requirepass ${password}\n${users}`);
      url = `redis://default:${password}@${LOOPBACK}:${port}`;
      return {
        name: 'Redis',
        label: 'redis',
        script: 'lifeline.js',
        // Redis logs to its standard output, which the lifeline sends to the log file together with start-up errors.
        args: [binary, configuration, '--bind', LOOPBACK, '--port', String(port), '--dir', path, ...DURABLE],
        announcesPid: true,
        cwd: path,
        url,
        answers: () => pingRedis(url),
        readyDeadlineMs: READY_DEADLINE_MS,
      };
    });
    const { dataDir } = options;
    const passwords = await ensureRedisPasswords(typeof dataDir === 'string' ? dataDir : dataDir.path);
    const urlOf = (user: RedisUser) => `redis://${user}:${passwords[user]}@${LOOPBACK}:${port}`;
    const urls = {
      producer: urlOf('producer'),
      collector: urlOf('collector'),
      worker: urlOf('worker'),
      query: urlOf('query'),
      operator: urlOf('operator'),
    };
    return { ...server, port, urls };
  });
}

/** Checks that a Redis is up and has loaded its data; rejects with the reason if not. */
async function pingRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: PROBE_TIMEOUT_MS,
    disconnectTimeout: 1,
  });
  // The error event has the reason of a failed connection; the rejected command does not.
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
