/** Everything that a round needs except workers: its own servers, proxies to them that can fail, the query API. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountDirectory, ApiKeyStore, createRedisClient, prefixIn, REDIS_PREFIX } from '@meterline/access';
import type { KeyRole } from '@meterline/catalog';
import {
  type LocalStack,
  type RunningClickHouse,
  type RunningRedis,
  startClickHouse,
  startLocalStack,
  startRedis,
} from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { type RedisCluster, startRedisCluster } from '../redis-topology.js';
import { type HttpProcess, type ServiceEnvironment, startQuery } from '../services.js';
import { databaseVariables } from '../stack.js';
import { RestartableServer } from './restartable-server.js';
import type { RedisForm } from './round-queues.js';
import { mountSmallDisk, unmountSmallDisk } from './small-disk.js';
import { TcpProxy } from './tcp-proxy.js';

const FIRST_YEAR = 2018;
const DATABASE = 'meterline';
const PROBE_TIMEOUT_MS = 10_000;
const CURSOR_SECRET = 'a secret of the fault tests, 32 characters or more';

/** The servers that are reached through the proxies that the fault breaks. */
export type Proxied = 'clickhouse' | 'redis' | 'both' | 'nothing';

const MASTERS = 3;

export interface SiteOptions {
  readonly onSmallDisk: boolean;
  /** In a Cluster are the rounds' queues and keys; the one server that starts as well is idle then. */
  readonly redis?: RedisForm;
}

export class Site {
  readonly clickhouse: RestartableServer<RunningClickHouse>;
  readonly redis: RestartableServer<RunningRedis>;
  readonly clickhouseLink: TcpProxy;
  readonly redisLink: TcpProxy;
  /** Undefined where Redis is one server. */
  readonly cluster: RedisCluster | undefined;
  readonly #form: RedisForm;
  readonly #stack: LocalStack;
  #query: HttpProcess | undefined;
  #rounds = 0;

  private constructor(
    stack: LocalStack,
    links: { readonly clickhouse: TcpProxy; readonly redis: TcpProxy },
    form: RedisForm,
    cluster: RedisCluster | undefined,
  ) {
    const { directory: dataDir } = stack;
    this.#stack = stack;
    this.clickhouse = new RestartableServer(stack.clickhouse, ({ httpPort }) => startClickHouse({ dataDir, httpPort }));
    this.redis = new RestartableServer(stack.redis, ({ port }) => startRedis({ dataDir, port }));
    this.clickhouseLink = links.clickhouse;
    this.redisLink = links.redis;
    this.#form = form;
    this.cluster = cluster;
  }

  /** @param onSmallDisk its data lies on a small disk of its own @throws when it cannot be mounted */
  static async open({ onSmallDisk, redis = 'server' }: SiteOptions): Promise<Site> {
    const dataDir = await mkdtemp(join(tmpdir(), 'meterline-faults-'));
    try {
      if (onSmallDisk && !mountSmallDisk(dataDir)) throw new Error(`a file system cannot be mounted on ${dataDir}`);
      const stack = await startLocalStack({ dataDir });
      const links = {
        clickhouse: await TcpProxy.open(stack.clickhouse.httpPort),
        redis: await TcpProxy.open(stack.redis.port),
      };
      const cluster =
        redis === 'server' ? undefined : await startRedisCluster(MASTERS, { replicas: redis === 'replicated' });
      return new Site(stack, links, redis, cluster);
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
    if (!this.cluster) return this.redis.running.url;
    return this.#form === 'replicated' ? `${this.cluster.url}?replicas=1` : this.cluster.url;
  }

  /** Each round gets a later month, because the hours that earlier rounds sealed stay sealed. */
  nextMonth(): number {
    this.#rounds += 1;
    return Date.UTC(FIRST_YEAR, this.#rounds);
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
      const prefix = prefixIn(redis, REDIS_PREFIX);
      const keys = new ApiKeyStore(redis, new AccountDirectory(redis, prefix), prefix);
      return (await keys.create({ account, role, clientId: 'fault-tests' }, new Date())).key;
    } finally {
      redis.disconnect();
    }
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await this.#query?.kill();
    await Promise.all([this.clickhouseLink.close(), this.redisLink.close()]);
    await Promise.all([this.clickhouse.kill(), this.redis.kill(), this.cluster?.close()]);
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
