/** Everything that a round needs except workers: its own servers, proxies to them that can fail, the query API. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import {
  type LocalStack,
  type RunningClickHouse,
  type RunningRedis,
  startClickHouse,
  startLocalStack,
  startRedis,
} from '@meterline/local-stack';
import { Redis } from 'ioredis';
import { type QueryProcess, type ServiceEnvironment, startQuery } from '../services.js';
import { RestartableServer } from './restartable-server.js';
import { TcpProxy } from './tcp-proxy.js';

const FIRST_YEAR = 2018;
const DATABASE = 'meterline';
const CURSOR_SECRET = 'a secret of the fault tests, 32 characters or more';

/** The server that is reached through the proxy that the fault breaks. */
export type Proxied = 'clickhouse' | 'redis' | 'nothing';

export class Site {
  readonly clickhouse: RestartableServer<RunningClickHouse>;
  readonly redis: RestartableServer<RunningRedis>;
  readonly clickhouseLink: TcpProxy;
  readonly redisLink: TcpProxy;
  readonly #stack: LocalStack;
  #query: QueryProcess | undefined;
  #rounds = 0;

  private constructor(stack: LocalStack, clickhouseLink: TcpProxy, redisLink: TcpProxy) {
    const { directory: dataDir } = stack;
    this.#stack = stack;
    this.clickhouse = new RestartableServer(stack.clickhouse, ({ httpPort, tcpPort }) =>
      startClickHouse({ dataDir, httpPort, tcpPort }),
    );
    this.redis = new RestartableServer(stack.redis, ({ port }) => startRedis({ dataDir, port }));
    this.clickhouseLink = clickhouseLink;
    this.redisLink = redisLink;
  }

  static async open(): Promise<Site> {
    const dataDir = await mkdtemp(join(tmpdir(), 'meterline-faults-'));
    try {
      const stack = await startLocalStack({ dataDir });
      return new Site(stack, await TcpProxy.open(stack.clickhouse.httpPort), await TcpProxy.open(stack.redis.port));
    } catch (error) {
      await rm(dataDir, { recursive: true });
      throw error;
    }
  }

  get clickhouseUrl(): string {
    return this.clickhouse.running.url;
  }

  get redisUrl(): string {
    return this.redis.running.url;
  }

  /** Each round gets a later month, because the hours that earlier rounds sealed stay sealed. */
  nextMonth(): number {
    this.#rounds += 1;
    return Date.UTC(FIRST_YEAR, this.#rounds);
  }

  /** Where a producer and a worker find their servers. */
  environment(proxied: Proxied): { readonly redisUrl: string; readonly worker: ServiceEnvironment } {
    const redisUrl = proxied === 'redis' ? `redis://127.0.0.1:${this.redisLink.port}` : this.redisUrl;
    const clickhouseUrl =
      proxied === 'clickhouse' ? `http://127.0.0.1:${this.clickhouseLink.port}` : this.clickhouseUrl;
    return {
      redisUrl,
      worker: { REDIS_URL: redisUrl, CLICKHOUSE_URL: clickhouseUrl, CLICKHOUSE_DATABASE: DATABASE },
    };
  }

  get database() {
    return { url: this.clickhouseUrl, user: 'default', password: '', database: DATABASE, application: 'fault-tests' };
  }

  async startQuery(): Promise<void> {
    const { worker: servers } = this.environment('nothing');
    this.#query = await startQuery({ ...servers, CURSOR_SECRET });
  }

  get query(): QueryProcess {
    if (!this.#query) throw new Error('the query service has not been started');
    return this.#query;
  }

  /** The text of an admin's key for the account. */
  async createKey(account: string): Promise<string> {
    const redis = new Redis(this.redisUrl);
    try {
      const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
      return (await keys.create({ account, role: 'admin', clientId: 'fault-tests' }, new Date())).key;
    } finally {
      redis.disconnect();
    }
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await this.#query?.kill();
    await Promise.all([this.clickhouseLink.close(), this.redisLink.close()]);
    await Promise.all([this.clickhouse.kill(), this.redis.kill()]);
    await rm(this.#stack.directory.path, { recursive: true, maxRetries: 5 });
  }
}
