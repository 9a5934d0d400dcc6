/** What a run needs besides its producers and workers: a product on servers of its own, proxies to them that can fail, the query API. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmdirSync } from 'node:fs';
import { mkdtemp, open, rm, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { types } from 'node:util';
import { isPortFree, type RunningServer, type Servers, startServers } from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { type Product, startProduct } from '../harness/product.js';
import type { HttpProcess, ServiceEnvironment } from '../harness/services.js';
import { until } from '../harness/waiting.js';
import { TcpProxy } from './tcp-proxy.js';

const FIRST_YEAR = 2018;
const PROBE_TIMEOUT_MS = 10_000;

/** As of the operator's commands: the audit of an hour of traffic may take longer than a response. */
const STATEMENT_TIMEOUT_MS = 600_000;

/** The servers that are reached through the proxies that the fault breaks. */
export type Proxied = 'clickhouse' | 'redis' | 'both' | 'nothing';

export class Fixture {
  readonly clickhouse: RestartableServer;
  readonly redis: RestartableServer;
  #query: HttpProcess | undefined;
  #runs = 0;

  private constructor(
    readonly product: Product,
    /** Where the servers' data lies. */
    readonly directory: string,
    { clickhouse, redis }: Servers,
    readonly clickhouseLink: TcpProxy,
    readonly redisLink: TcpProxy,
  ) {
    this.clickhouse = new RestartableServer(clickhouse);
    this.redis = new RestartableServer(redis);
  }

  /** @param onSmallDisk its data lies on a small disk of its own @throws when it cannot be mounted */
  static async open(onSmallDisk = false): Promise<Fixture> {
    const directory = await mkdtemp(join(tmpdir(), 'meterline-faults-'));
    try {
      if (onSmallDisk && !mountSmallDisk(directory)) throw new Error(`a file system cannot be mounted on ${directory}`);
      const stack = await startServers({ dataDir: directory });
      const { clickhouse, redis } = stack;
      const links = [await TcpProxy.open(clickhouse.httpPort), await TcpProxy.open(redis.port)] as const;
      const database = { database: 'meterline', requestTimeoutMs: STATEMENT_TIMEOUT_MS };
      const product = await startProduct({ redisUrl: redis.url, clickhouse, database });
      return new Fixture(product, directory, stack, ...links);
    } catch (error) {
      await removeDisk(directory);
      throw error;
    }
  }

  /** Each run gets a later month, because the hours that earlier runs sealed stay sealed. */
  nextMonth(): number {
    this.#runs += 1;
    return Date.UTC(FIRST_YEAR, this.#runs);
  }

  /** Where a producer and a worker find their servers. */
  environment(proxied: Proxied) {
    const { env } = this.product;
    const through = (server: Proxied, url: string, { port }: TcpProxy) =>
      proxied === server || proxied === 'both' ? Object.assign(new URL(url), { port }).href.replace(/\/$/, '') : url;
    return {
      REDIS_URL: through('redis', this.redis.running.url, this.redisLink),
      CLICKHOUSE_URL: through('clickhouse', env.CLICKHOUSE_URL ?? '', this.clickhouseLink),
    };
  }

  /** Starts the query service again, with the same secret, so that cursors stay valid. @param env added to its environment */
  async startQuery(env: ServiceEnvironment = {}): Promise<void> {
    this.#query = await this.product.startQuery(env);
  }

  get query(): HttpProcess {
    if (!this.#query) throw new Error('the query service has not been started');
    return this.#query;
  }

  /** Starts what has ended by itself. @returns whether both servers answer */
  async restartEndedServers(): Promise<boolean> {
    const areUp = await Promise.all([this.#isClickhouseUp(), this.#isRedisUp()]);
    for (const [index, server] of [this.clickhouse, this.redis].entries()) {
      if (areUp[index]) continue;
      await server.kill();
      await server.start();
    }
    return areUp.every((isUp) => isUp);
  }

  async #isClickhouseUp(): Promise<boolean> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    const response = await fetch(`${this.clickhouse.running.url}/ping`, { signal }).catch(() => undefined);
    return response?.ok === true;
  }

  async #isRedisUp(): Promise<boolean> {
    const redis = new Redis(this.redis.running.url, { maxRetriesPerRequest: 0, retryStrategy: () => null });
    // The rejected command says the same.
    redis.on('error', () => undefined);
    const response = await redis.set('fault-tests:probe', 'x', 'EX', 1).catch(() => undefined);
    redis.disconnect();
    return response === 'OK';
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await this.product.close();
    await Promise.all([this.clickhouseLink.close(), this.redisLink.close()]);
    await Promise.all([this.clickhouse.kill(), this.redis.kill()]);
    await removeDisk(this.directory);
  }
}

/** A server that can be killed or stopped and started again with the same data, on the same ports. */
export class RestartableServer {
  #running: RunningServer;

  constructor(first: RunningServer) {
    this.#running = first;
  }

  get running(): RunningServer {
    return this.#running;
  }

  /** Waits for the port, because a client may have taken it for a moment while the server was down. @throws LocalStackError */
  async start(): Promise<void> {
    const port = Number(new URL(this.#running.url).port);
    await until(`port ${port} is free`, () => isPortFree(port));
    this.#running = await this.#running.restart();
  }

  /** Sends SIGKILL and waits for the end. */
  kill(): Promise<void> {
    return this.#running.kill();
  }

  /** Stops the server cleanly and waits for the end. */
  stop(): Promise<void> {
    return this.#running.stop();
  }
}

const DISK_SIZE = '640m';
const CHUNK_BYTES = 1024 * 1024;
const FILLER = 'filler';

/** A file system in memory, which can be filled, on an existing, empty directory. @returns whether the system allows that */
function mountSmallDisk(directory: string): boolean {
  const args = ['-t', 'tmpfs', '-o', `size=${DISK_SIZE},mode=0700`, 'meterline-faults', directory];
  return spawnSync('mount', args, { stdio: 'ignore' }).status === 0;
}

/** Tries it. */
export function canMountSmallDisk(): boolean {
  const directory = mkdtempSync(join(tmpdir(), 'meterline-mount-'));
  const canMount = mountSmallDisk(directory);
  if (canMount) unmount(directory);
  rmdirSync(directory);
  return canMount;
}

function unmount(directory: string): void {
  spawnSync('umount', ['--lazy', directory], { stdio: 'ignore' });
}

async function removeDisk(directory: string): Promise<void> {
  unmount(directory);
  await rm(directory, { recursive: true, maxRetries: 5 });
}

/**
 * Writes until no more than so many bytes are free: 0 until nothing more fits. It may be called again, because a server that
 * deletes files makes room.
 */
export async function fillDisk(directory: string, leftBytes = 0): Promise<void> {
  const file = await open(join(directory, FILLER), 'a');
  const { bavail, bsize } = await statfs(directory);
  let chunks = (bavail * bsize - leftBytes) / CHUNK_BYTES;
  try {
    for (let bytes = CHUNK_BYTES; bytes >= 1 && (leftBytes === 0 || chunks > 0); chunks -= 1) {
      try {
        await file.appendFile(Buffer.alloc(bytes));
      } catch (error) {
        // Jest's `Error` is another class than that of Node's own errors.
        if (!types.isNativeError(error) || !('code' in error) || error.code !== 'ENOSPC') throw error;
        bytes = Math.floor(bytes / 2);
      }
    }
  } finally {
    await file.close();
  }
}

export async function freeDisk(directory: string): Promise<void> {
  await rm(join(directory, FILLER), { force: true });
}
