/** Everything that a run needs except workers: its own servers, proxies to them that can fail, the query API. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KeyRole } from '@meterline/catalog';
import {
  LocalStackError,
  type RunningClickHouse,
  type RunningRedis,
  type RunningServer,
  type Servers,
  startClickHouse,
  startRedis,
  startServers,
} from '@meterline/local-stack';
import { AccountDirectory, ApiKeyStore, createRedisClient, REDIS_PREFIX } from '@meterline/service/access';
import { createWarehouse, type Warehouse } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { type HttpProcess, type ServiceEnvironment, startQuery } from '../harness/services.js';
import { databaseVariables } from '../harness/stack.js';
import { mountSmallDisk, unmountSmallDisk } from './small-disk.js';
import { TcpProxy } from './tcp-proxy.js';

const FIRST_YEAR = 2018;
const DATABASE = 'meterline';
const PROBE_TIMEOUT_MS = 10_000;
const CURSOR_SECRET = 'a secret of the fault tests, 32 characters or more';

/** The servers that are reached through the proxies that the fault breaks. */
export type Proxied = 'clickhouse' | 'redis' | 'both' | 'nothing';

export class Fixture {
  readonly clickhouse: RestartableServer<RunningClickHouse>;
  readonly redis: RestartableServer<RunningRedis>;
  readonly clickhouseLink: TcpProxy;
  readonly redisLink: TcpProxy;
  /** Past the proxy. */
  readonly warehouse: Warehouse;
  readonly #stack: Servers;
  #query: HttpProcess | undefined;
  #runs = 0;

  private constructor(stack: Servers, links: { readonly clickhouse: TcpProxy; readonly redis: TcpProxy }) {
    const { directory: dataDir } = stack;
    this.#stack = stack;
    this.clickhouse = new RestartableServer(stack.clickhouse, ({ httpPort }) => startClickHouse({ dataDir, httpPort }));
    this.redis = new RestartableServer(stack.redis, ({ port }) => startRedis({ dataDir, port }));
    this.clickhouseLink = links.clickhouse;
    this.redisLink = links.redis;
    this.warehouse = createWarehouse(this.database);
  }

  /** @param onSmallDisk its data lies on a small disk of its own @throws when it cannot be mounted */
  static async open({ onSmallDisk }: { readonly onSmallDisk: boolean }): Promise<Fixture> {
    const dataDir = await mkdtemp(join(tmpdir(), 'meterline-faults-'));
    try {
      if (onSmallDisk && !mountSmallDisk(dataDir)) throw new Error(`a file system cannot be mounted on ${dataDir}`);
      const stack = await startServers({ dataDir });
      const links = {
        clickhouse: await TcpProxy.open(stack.clickhouse.httpPort),
        redis: await TcpProxy.open(stack.redis.port),
      };
      return new Fixture(stack, links);
    } catch (error) {
      unmountSmallDisk(dataDir);
      await rm(dataDir, { recursive: true });
      throw error;
    }
  }

  /** Where its data lies. */
  get directory(): string {
    return this.#stack.directory.path;
  }

  get redisUrl(): string {
    return this.redis.running.url;
  }

  /** Each run gets a later month, because the hours that earlier runs sealed stay sealed. */
  nextMonth(): number {
    this.#runs += 1;
    return Date.UTC(FIRST_YEAR, this.#runs);
  }

  /** Where a producer and a worker find their servers. */
  environment(proxied: Proxied): { readonly redisUrl: string; readonly worker: ServiceEnvironment } {
    const isProxied = (server: Proxied) => proxied === server || proxied === 'both';
    const redisUrl = isProxied('redis') ? withPort(this.redisUrl, this.redisLink.port) : this.redisUrl;
    const url = isProxied('clickhouse') ? `http://127.0.0.1:${this.clickhouseLink.port}` : this.database.url;
    return {
      redisUrl,
      worker: { REDIS_URL: redisUrl, ...databaseVariables({ ...this.database, url }) },
    };
  }

  get database() {
    const { url, user, password } = this.clickhouse.running;
    return { url, user, password, database: DATABASE, application: 'fault-tests' };
  }

  /** Starts the query service again, with the same secret, so that cursors stay valid. @param env added to its environment */
  async startQuery(env: ServiceEnvironment = {}): Promise<void> {
    const { worker: servers } = this.environment('nothing');
    this.#query = await startQuery({ ...servers, CURSOR_SECRET, ...env });
  }

  get query(): HttpProcess {
    if (!this.#query) throw new Error('the query service has not been started');
    return this.#query;
  }

  /** Starts what has ended by itself. @returns whether both servers answer */
  async restartEndedServers(): Promise<boolean> {
    const answers = await Promise.all([this.#clickhouseAnswers(), this.#redisAnswers()]);
    const servers = [this.clickhouse, this.redis];
    for (const [index, server] of servers.entries()) {
      if (answers[index]) continue;
      await server.kill();
      await server.start();
    }
    return answers.every((answer) => answer);
  }

  async #clickhouseAnswers(): Promise<boolean> {
    const signal = AbortSignal.timeout(PROBE_TIMEOUT_MS);
    return fetch(`${this.database.url}/ping`, { signal }).then(
      ({ ok }) => ok,
      () => false,
    );
  }

  async #redisAnswers(): Promise<boolean> {
    const redis = new Redis(this.redisUrl, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null });
    // The rejected command says the same.
    redis.on('error', () => undefined);
    try {
      await redis.set('fault-tests:probe', 'x', 'EX', 1);
      return true;
    } catch {
      return false;
    } finally {
      redis.disconnect();
    }
  }

  /** The text of a key for the account. */
  async createKey(account: string, role: KeyRole = 'admin'): Promise<string> {
    const redis = createRedisClient(this.redisUrl, {});
    try {
      const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
      return (await keys.create({ account, role, clientId: 'fault-tests' }, new Date())).key;
    } finally {
      redis.disconnect();
    }
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await this.#query?.kill();
    await this.warehouse.close();
    await Promise.all([this.clickhouseLink.close(), this.redisLink.close()]);
    await Promise.all([this.clickhouse.kill(), this.redis.kill()]);
    unmountSmallDisk(this.directory);
    await rm(this.#stack.directory.path, { recursive: true, maxRetries: 5 });
  }
}

/** The same server through a proxy, with the same password. */
function withPort(address: string, port: number): string {
  const url = new URL(address);
  url.port = String(port);
  return url.href;
}

const PORT_PATIENCE_MS = 20_000;
const POLL_MS = 100;

/** A server that can be killed or stopped and started again with the same data, on the same ports. */
export class RestartableServer<Server extends RunningServer = RunningServer> {
  readonly #launch: (before: Server) => Promise<Server>;
  #running: Server;

  /** @param launch starts the server again, on the same ports */
  constructor(first: Server, launch: (before: Server) => Promise<Server>) {
    this.#running = first;
    this.#launch = launch;
  }

  get running(): Server {
    return this.#running;
  }

  /** Retries, because a client may have taken the port for a moment while the server was down. @throws LocalStackError */
  async start(): Promise<void> {
    const patienceEnds = Date.now() + PORT_PATIENCE_MS;
    for (;;) {
      try {
        this.#running = await this.#launch(this.#running);
        return;
      } catch (error) {
        const isTaken = error instanceof LocalStackError && error.code === 'port_in_use';
        if (!isTaken || Date.now() > patienceEnds) throw error;
        await sleep(POLL_MS);
      }
    }
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
