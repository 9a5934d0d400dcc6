/** A local Redis with the users of redis/users.conf and no other, as in production. */
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
/** users.conf needs 7.0. */
const OLDEST_MAJOR = 7;
const WAY_OUT = 'install Redis 7 or newer so that redis-server is on PATH, or set REDIS_URL to a server of your own';

/**
 * A queue may lose nothing: every write is on disk before it is answered, and memory that runs out is an error rather than an eviction.
 * With `everysec` Redis may answer up to 2 s before it writes (aof.c, flushAppendOnlyFile), which even `kill -9` then loses.
 */
const DURABLE = [
  ...['--save', '', '--appendonly', 'yes', '--appendfsync', 'always'],
  ...['--maxmemory-policy', 'noeviction', '--proto-max-bulk-len', '32mb'],
];

const REDIS_USERS = ['producer', 'collector', 'worker', 'query', 'alerts', 'operator', 'admin'] as const;
export type RedisUser = (typeof REDIS_USERS)[number];

/** `url` is that of the admin, who may do everything. Passwords are the same at every start in a data directory. */
export interface RunningRedis extends RunningServer {
  readonly port: number;
  /** The address for each user. */
  readonly urls: Readonly<Record<RedisUser, string>>;
}

export interface RedisOptions {
  /** The data goes to `<dataDir>/redis`, the log to `<dataDir>/redis.log`; configuration and password stay in it. */
  readonly dataDir: DataDirectory;
  /** The prefix of the queues that users may use. Default: any. */
  readonly queuePrefix?: string | undefined;
  /** Called with one line before a step that takes long, such as installing Redis. */
  readonly say?: ((line: string) => void) | undefined;
}

/**
 * Starts a Redis on the loopback address that keeps every acknowledged write over a restart, `kill -9` and a power cut.
 * @throws LocalStackError
 */
export async function startRedis(options: RedisOptions): Promise<RunningRedis> {
  const { dataDir: directory, queuePrefix, say } = options;
  const binary = await ensureRedisServer({ say });
  const path = directory.file('redis');
  await mkdir(path, { recursive: true, mode: 0o700 });
  return launchOnPort(async (port) => {
    const url = `redis://admin:${passwordOf(directory.secret, 'redis')}@${LOOPBACK}:${port}`;
    // A file, because every user of the machine can read the arguments of a process.
    const configuration = directory.file('redis.conf');
    await writePrivateText(configuration, await usersFor(url, queuePrefix));
    const server = await startServer(directory, {
      name: 'Redis',
      label: 'redis',
      command: binary,
      args: [configuration, '--bind', LOOPBACK, '--port', String(port), '--dir', path, ...DURABLE],
      cwd: path,
      // Redis 7.2 and newer end at once under a locale that the machine does not have.
      env: { ...process.env, LC_ALL: 'C' },
      url,
      isReady: () => pingRedis(url),
    });
    const urls = Object.fromEntries(REDIS_USERS.map((user) => [user, redisUrlOf(url, user)]));
    return { ...server, port, urls: urls as Record<RedisUser, string> };
  });
}

/** The address of a local Redis for another user. @param adminUrl that of its admin */
export function redisUrlOf(adminUrl: string, user: RedisUser): string {
  const url = new URL(adminUrl);
  if (user !== 'admin') url.password = passwordOf(url.password, user);
  url.username = user;
  return url.href;
}

/** redis/users.conf with its passwords, for the queues of this prefix. */
async function usersFor(adminUrl: string, queuePrefix: string | undefined): Promise<string> {
  const users = await readFile(USERS_FILE, 'utf8');
  const pattern = queuePrefix === undefined ? '*' : patternOf(queuePrefix);
  return REDIS_USERS.reduce(
    (text, user) => text.replace(`>${user.toUpperCase()}_PASSWORD`, `>${new URL(redisUrlOf(adminUrl, user)).password}`),
    users.replaceAll('bull:', `${pattern}:`),
  );
}

/** What a pattern gives a meaning, and blanks, which end one, stand for any byte. */
function patternOf(prefix: string): string {
  return prefix.replace(/[^\w.:-]/gu, (character) => '?'.repeat(Buffer.byteLength(character)));
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

export interface RedisBinaryOptions {
  /** Provides PATH, and is passed to a package manager. Default: this process's environment. */
  readonly env?: NodeJS.ProcessEnv | undefined;
  /** Called with one line before a step that takes long or changes the machine. */
  readonly say?: ((line: string) => void) | undefined;
}

/**
 * The absolute path of a `redis-server` that Meterline can use: the one on PATH, or else one installed now with the system's package
 * manager, if that is possible without asking anyone.
 * @throws LocalStackError whose message says what to do
 */
export async function ensureRedisServer({ env = process.env, say }: RedisBinaryOptions = {}): Promise<string> {
  const binary = (await findExecutable('redis-server', env)) ?? (await installRedis(env, say));
  const { stdout } = await promisify(execFile)(binary, ['--version']).catch((error) => {
    throw unavailable(`${binary} does not run (${errorMessage(error).trim()})`, error);
  });
  const [, major = '0', minor = '0'] = /\bv=(\d+)\.(\d+)/.exec(stdout) ?? [];
  if (Number(major) >= OLDEST_MAJOR) return binary;
  throw unavailable(`${binary} is version ${major}.${minor}`);
}

async function installRedis(env: NodeJS.ProcessEnv, say: RedisBinaryOptions['say']): Promise<string> {
  const tool = await installProgram({ ...REDIS, env, say }).catch((error) => {
    throw unavailable(errorMessage(error), error);
  });
  if (!tool) throw unavailable('redis-server is not on PATH');
  const installed = await findExecutable('redis-server', env);
  if (!installed) throw unavailable(`${tool} put no redis-server on PATH`);
  return installed;
}

function unavailable(problem: string, cause?: unknown): LocalStackError {
  return new LocalStackError(`${problem}: ${WAY_OUT}.`, { cause });
}
