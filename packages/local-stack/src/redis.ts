/** Starts a local Redis that has only the users of redis/users.conf, as in production. */
import { execFile } from 'node:child_process';
import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { writePrivateText } from '@meterline/service/files';
import { Redis } from 'ioredis';
import { type DataDirectory, passwordOf } from './data-directory.js';
import { errorMessage, LocalStackError } from './errors.js';
import { LOOPBACK, launchOnPort } from './ports.js';
import { type RunningServer, startServer } from './server-process.js';
import { findExecutable, installProgram, REDIS } from './system-package.js';

const USERS_FILE = fileURLToPath(new URL('../../../redis/users.conf', import.meta.url));
const PROBE_TIMEOUT_MS = 5_000;
/** redis/users.conf requires this version. */
const MIN_MAJOR = 7;
const FIX = 'install Redis 7 or newer so that redis-server is on PATH, or set REDIS_URL to your own server';

/**
 * These options keep the queue from losing jobs. Redis writes to disk before it replies. If memory is full, Redis returns errors and does
 * not evict keys. With `appendfsync everysec` instead, Redis may reply up to 2 s before it writes (aof.c, flushAppendOnlyFile), so even
 * `kill -9` could lose jobs.
 */
const DURABLE = [
  ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'],
  ...['--maxmemory-policy', 'noeviction', '--proto-max-bulk-len', '32mb'],
];

const REDIS_USERS = ['producer', 'collector', 'worker', 'query', 'alerts', 'operator', 'admin'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

/** `url` has the user `admin`, who has all rights. The passwords stay the same across restarts with one data directory. */
export interface RunningRedis extends RunningServer {
  readonly port: number;
  readonly urls: Readonly<Record<RedisUser, string>>;
}

export interface RedisOptions {
  /** The directory for the data (`redis`), the log (`redis.log`), and the configuration, which contains the passwords. */
  readonly dataDir: DataDirectory;
  /** Prefix of the queues that the users can access (default: any prefix). */
  readonly queuePrefix?: string | undefined;
  readonly say?: ((line: string) => void) | undefined;
}

/** Starts Redis on the loopback address. Acknowledged writes survive a restart, `kill -9` and a power cut. @throws LocalStackError */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const { dataDir: directory, queuePrefix, say } = options;
  const binary = await ensureRedisServer({ say });
  const path = directory.file('redis');
  await mkdir(path, { recursive: true, mode: 0o700 });
  return launchOnPort(async (port) => {
    const url = `redis://admin:${passwordOf(directory.secret, 'redis')}@${LOOPBACK}:${port}`;
    // The configuration is passed in a file, because every user of the machine can read the arguments of a process.
    const configuration = directory.file('redis.conf');
    await writePrivateText(configuration, await usersFor(url, queuePrefix));
    const server = await startServer(directory, {
      name: 'Redis',
      label: 'redis',
      command: binary,
      args: [configuration, '--bind', LOOPBACK, '--port', String(port), '--dir', path, ...DURABLE],
      cwd: path,
      // Redis 7.2 and newer exit if the machine does not have the configured locale, so use the locale that always exists.
      env: { ...process.env, LC_ALL: 'C' },
      url,
      isReady: () => pingRedis(url),
    });
    const urls = Object.fromEntries(REDIS_USERS.map((user) => [user, redisUrlOf(url, user)]));
    return { ...server, port, urls: urls as Record<RedisUser, string> };
  });
}

/** Returns the URL of a user. @param adminUrl the URL of the admin. The passwords of the other users are derived from the admin's. */
export function redisUrlOf(adminUrl: string, user: RedisUser): string {
  const url = new URL(adminUrl);
  if (user !== 'admin') url.password = passwordOf(url.password, user);
  url.username = user;
  return url.href;
}

async function usersFor(adminUrl: string, queuePrefix: string | undefined): Promise<string> {
  const users = await readFile(USERS_FILE, 'utf8');
  const pattern = queuePrefix === undefined ? '*' : patternOf(queuePrefix);
  return REDIS_USERS.reduce(
    (text, user) => text.replace(`>${user.toUpperCase()}_PASSWORD`, `>${new URL(redisUrlOf(adminUrl, user)).password}`),
    users.replaceAll('bull:', `${pattern}:`),
  );
}

/** Converts a prefix to a key pattern of an ACL rule. Replaces special characters, and spaces, which would end the pattern, with `?` (any byte). */
function patternOf(prefix: string): string {
  return prefix.replace(/[^\w.:-]/gu, (character) => '?'.repeat(Buffer.byteLength(character)));
}

/** Checks that Redis has started and loaded its data. @throws the reason if it has not */
async function pingRedis(url: string): Promise<void> {
  const redis = new Redis(url, {
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: PROBE_TIMEOUT_MS,
    disconnectTimeout: 1,
  });
  // Keep the error of this event, because the error that `connect` throws does not contain the reason.
  let reason: unknown;
  redis.on('error', (error) => {
    reason = error;
  });
  try {
    await redis.connect();
    // PING fails with LOADING while Redis loads its data.
    await redis.ping();
  } catch (error) {
    throw reason ?? error;
  } finally {
    redis.disconnect();
  }
}

export interface RedisBinaryOptions {
  /** Environment with PATH, also used for the package manager (default: the environment of this process). */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Called with one line before a step that is slow or changes the machine. */
  readonly say?: ((line: string) => void) | undefined;
}

/** Returns the path of a suitable `redis-server`. Installs Redis if PATH has none and no prompt is necessary. @throws LocalStackError */
export async function ensureRedisServer({ env = process.env, say }: RedisBinaryOptions = {}): Promise<string> {
  const binary = (await findExecutable('redis-server', env)) ?? (await installRedis(env, say));
  const { stdout } = await promisify(execFile)(binary, ['--version']).catch((error) => {
    throw unavailable(`${binary} does not run (${errorMessage(error).trim()})`, error);
  });
  const [, major = '0', minor = '0'] = /\bv=(\d+)\.(\d+)/.exec(stdout) ?? [];
  if (Number(major) >= MIN_MAJOR) return binary;
  throw unavailable(`${binary} is version ${major}.${minor}`);
}

async function installRedis(env: NodeJS.ProcessEnv, say: RedisBinaryOptions['say']): Promise<string> {
  const tool = await installProgram({ ...REDIS, env, say }).catch((error) => {
    throw unavailable(errorMessage(error), error);
  });
  if (!tool) throw unavailable('redis-server is not on PATH');
  const installed = await findExecutable('redis-server', env);
  if (!installed) throw unavailable(`after the installation with ${tool}, redis-server is still not on PATH`);
  return installed;
}

function unavailable(problem: string, cause?: unknown): LocalStackError {
  return new LocalStackError(`${problem}: ${FIX}.`, { cause });
}
