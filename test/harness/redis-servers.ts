/** Redis servers of a test's own: a master, a replica and a Sentinel, on the loopback address; and one that is full. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort, watched } from '@meterline/local-stack';
import { Redis, type RedisOptions } from 'ioredis';
import { until } from './waiting.js';

const HOST = '127.0.0.1';
const DURABLE = ['--save', '', '--appendonly', 'yes', '--appendfsync', 'always', '--maxmemory-policy', 'noeviction'];

/** A redis-server; it ends with this process, and keeps its data over `kill` and `start`. */
export class RedisProcess {
  readonly #directory: string;
  #process: ChildProcess | undefined;
  /** All that it has written so far. */
  log = '';

  constructor(
    readonly port: number,
    directory: string,
    /** Who may run commands. Default: anybody. */
    readonly user: Pick<RedisOptions, 'username' | 'password'> = {},
    readonly binary = 'redis-server',
  ) {
    this.#directory = join(directory, String(port));
  }

  async start(...args: readonly string[]): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    const own = ['--port', String(this.port), '--bind', HOST, '--dir', this.#directory, '--protected-mode', 'no'];
    await this.#launch([...args, ...own]);
  }

  async startSentinel(configuration: string): Promise<void> {
    await mkdir(this.#directory, { recursive: true });
    const file = join(this.#directory, 'sentinel.conf');
    await writeFile(file, `port ${this.port}\nbind ${HOST}\ndir ${this.#directory}\n${configuration}\n`);
    await this.#launch([file, '--sentinel']);
  }

  async #launch(args: readonly string[]): Promise<void> {
    const started = spawn(...watched(this.binary, args));
    for (const output of [started.stdout, started.stderr]) output.on('data', (text) => (this.log += String(text)));
    this.#process = started;
    const responds = () => this.command((redis) => redis.ping()).then(Boolean, () => false);
    await until('a redis-server has started', responds);
  }

  /** On a connection of its own, tried once. */
  async command<T>(run: (redis: Redis) => Promise<T>): Promise<T> {
    const options = { ...this.user, lazyConnect: true, retryStrategy: () => null, disconnectTimeout: 1 };
    const redis = new Redis(this.port, HOST, options);
    redis.on('error', () => undefined);
    try {
      await redis.connect();
      return await run(redis);
    } finally {
      redis.disconnect();
    }
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#process?.kill(name);
  }

  /** Safe to call again. */
  async kill(signal: 'SIGTERM' | 'SIGKILL' = 'SIGKILL'): Promise<void> {
    const running = this.#process;
    if (!running || running.exitCode !== null || running.signalCode !== null) return;
    const gone = once(running, 'exit');
    running.kill(signal);
    await gone;
  }
}

/** Resolves when a replica has all that its master has. */
function isLinked(replica: RedisProcess): Promise<void> {
  return until('the replica has what its master has', async () =>
    (await replica.command((redis) => redis.info('replication'))).includes('master_link_status:up'),
  );
}

export interface WatchedRedis {
  readonly url: string;
  /** The two servers; the first is the master at first. */
  readonly servers: readonly [RedisProcess, RedisProcess];
  /** Tells the Sentinel that the master is down, and resolves when the server is the master. */
  promote(server: RedisProcess): Promise<void>;
  /** Starts a server again that was killed, as a replica of the other, and resolves when it has all that the other has. */
  rejoin(server: RedisProcess): Promise<void>;
  close(): Promise<void>;
}

/** A master and a replica, and a Sentinel that has to agree with nobody. */
export async function startWatchedRedis(): Promise<WatchedRedis> {
  const directory = await mkdtemp(join(tmpdir(), 'meterline-redis-sentinel-'));
  const open = async () => new RedisProcess(await findFreePort(), directory);
  const [master, replica, sentinel] = [await open(), await open(), await open()];
  const replicaOf = ({ port }: RedisProcess) => ['--replicaof', HOST, String(port), '--repl-diskless-sync-delay', '0'];
  await master.start(...DURABLE, '--repl-diskless-sync-delay', '0');
  await replica.start(...DURABLE, ...replicaOf(master));
  await isLinked(replica);
  await sentinel.startSentinel(
    [
      `sentinel monitor main ${HOST} ${master.port} 1`,
      // It finds no master down by itself, however slow the machine is; the test says when.
      'sentinel down-after-milliseconds main 600000',
      'sentinel failover-timeout main 3000',
    ].join('\n'),
  );
  const knowsAll = async (redis: Redis) => {
    // Rejected until it can agree with itself.
    const quorum = await redis.call('SENTINEL', 'CKQUORUM', 'main').catch(String);
    const replicas = JSON.stringify(await redis.call('SENTINEL', 'REPLICAS', 'main'));
    return String(quorum).startsWith('OK') && replicas.includes(`:${replica.port}`);
  };
  await until('the Sentinel knows both servers', () => sentinel.command(knowsAll));
  const servers = [master, replica] as const;
  return {
    url: `redis+sentinel://${HOST}:${sentinel.port}/main`,
    servers,
    promote: async (server) => {
      await until('the server is the master', () =>
        sentinel.command(async (redis) => {
          const address = await redis.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', 'main');
          if (JSON.stringify(address).includes(`"${server.port}"`)) return true;
          // Refused while one is under way, and until the Sentinel has heard of the replica.
          await redis.call('SENTINEL', 'FAILOVER', 'main').catch(() => undefined);
          return false;
        }),
      );
    },
    rejoin: async (server) => {
      const other = servers.find((one) => one !== server) ?? server;
      await server.start(...DURABLE, ...replicaOf(other));
      await isLinked(server);
    },
    close: async () => {
      await Promise.all([sentinel, master, replica].map((one) => one.kill()));
      await rm(directory, { recursive: true, maxRetries: 5 });
    },
  };
}

/** Leaves no room for another command, as jobs that wait would. */
export async function fillRedis(redis: Redis): Promise<void> {
  const [, used] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
  await redis.config('SET', 'maxmemory', String(Number(used) - 200_000));
}
