/** The run's own servers and services, in a new folder. All are removed at the end. */
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type RunningClickHouse, type Servers, startServers } from '@meterline/local-stack';
import { AccountDirectory, ApiKeyStore, type KeyRole, REDIS_PREFIX } from '@meterline/service/access';
import { createWarehouse, migrate, type Warehouse } from '@meterline/warehouse';
import type { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import {
  type HttpProcess,
  killServices,
  NO_LIMITS,
  type ServiceEnvironment,
  type ServiceProcess,
  startCollector,
  startIngest,
  startQuery,
} from '../harness/services.js';
import { execute } from '../harness/stack.js';
import { peakResidentBytes } from './machine.js';
import { type Script, startScript } from './script.js';
import { openQueue } from './usage-queue.js';

const CURSOR_SECRET = 'a secret of the benchmark, 32 characters or more';

const COLLECTOR_WITHOUT_LIMITS: ServiceEnvironment = {
  ACCOUNT_RATE: '1000000',
  METERLINE_CONSTANTS: JSON.stringify({ maxBytes: 1_000_000_000 }),
};

export type Say = (line: string) => void;

export class Site {
  /** The peak resident memory of each service in this run, over all its processes, in bytes. */
  readonly peaks: { ingest?: number; query?: number } = {};
  /** Databases that are loaded and sealed. */
  readonly loaded = new Set<string>();
  readonly #stack: Servers;
  readonly #directory: string;
  readonly #warehouses = new Map<string, Warehouse>();
  readonly #scripts = new Set<Script>();
  readonly #queues = new Set<Queue>();

  private constructor(
    stack: Servers,
    directory: string,
    readonly say: Say,
  ) {
    this.#stack = stack;
    this.#directory = directory;
  }

  static async open(dataDir: string, say: Say): Promise<Site> {
    await mkdir(dataDir, { recursive: true });
    const directory = await mkdtemp(join(dataDir, 'bench-'));
    try {
      return new Site(await startServers({ dataDir: directory, say }), directory, say);
    } catch (error) {
      await rm(directory, { recursive: true });
      throw error;
    }
  }

  get redisUrl(): string {
    return this.#stack.redis.url;
  }

  get clickhouse(): RunningClickHouse {
    return this.#stack.clickhouse;
  }

  get redisPid(): number {
    return this.#stack.redis.pid;
  }

  /** The processes of the servers, by what a report calls them. */
  get serverPids(): Readonly<Record<string, number>> {
    return { ClickHouse: this.#stack.clickhouse.pid, Redis: this.#stack.redis.pid };
  }

  /** The database with Meterline's schema, created at the first call. */
  async warehouse(database: string): Promise<Warehouse> {
    const known = this.#warehouses.get(database);
    if (known) return known;
    const { url, user, password } = this.clickhouse;
    const options = {
      url,
      user,
      password,
      database,
      application: 'meterline-bench',
      requestTimeoutMs: 600_000,
    };
    await migrate(options);
    const warehouse = createWarehouse(options);
    this.#warehouses.set(database, warehouse);
    return warehouse;
  }

  async drop(database: string): Promise<void> {
    const warehouse = await this.warehouse(database);
    await execute(warehouse, `DROP DATABASE ${database} SYNC`);
    await warehouse.close();
    this.#warehouses.delete(database);
    this.loaded.delete(database);
  }

  /** Runs a worker that seals nothing during the work. */
  async withIngest<T>(environment: ServiceEnvironment, work: (worker: ServiceProcess) => Promise<T>): Promise<T> {
    const worker = await startIngest({ ...this.#servers(), LOG_LEVEL: 'info', ...environment });
    try {
      return await work(worker);
    } finally {
      this.#notePeak('ingest', worker);
      await worker.stop();
    }
  }

  /**
   * Runs a query service during the work. Unless the environment says otherwise, it has no limits for its callers.
   */
  async withQuery<T>(
    database: string,
    work: (query: HttpProcess) => Promise<T>,
    environment: ServiceEnvironment = NO_LIMITS,
  ): Promise<T> {
    await this.warehouse(database);
    const query = await startQuery({
      ...this.#servers(),
      CLICKHOUSE_DATABASE: database,
      CURSOR_SECRET,
      ...environment,
    });
    try {
      return await work(query);
    } finally {
      this.#notePeak('query', query);
      await query.stop();
    }
  }

  /** Runs a collector during the work, without limits for its callers. */
  async withCollector<T>(environment: ServiceEnvironment, work: (collector: HttpProcess) => Promise<T>): Promise<T> {
    const collector = await startCollector({ ...this.#servers(), ...COLLECTOR_WITHOUT_LIMITS, ...environment });
    try {
      return await work(collector);
    } finally {
      await collector.stop();
    }
  }

  /** Runs a file of this folder as a separate process during the work. */
  async withScript<T>(file: string, args: readonly string[], work: (script: Script) => Promise<T>): Promise<T> {
    const script = startScript(file, args);
    this.#scripts.add(script);
    try {
      return await work(script);
    } finally {
      await script.stop();
      this.#scripts.delete(script);
    }
  }

  /** Open until the end of the run. */
  queue(prefix: string): Queue {
    const queue = openQueue(this.redisUrl, prefix);
    this.#queues.add(queue);
    return queue;
  }

  /** The text of a key for the account; each client has its own limit for stored pages. */
  async createKey(account: string, clientId: string, role: KeyRole = 'admin'): Promise<string> {
    const redis = new Redis(this.redisUrl);
    try {
      const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
      return (await keys.create({ account, role, clientId }, new Date())).key;
    } finally {
      redis.disconnect();
    }
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await Promise.all([killServices(), ...[...this.#scripts].map((script) => script.kill())]);
    await Promise.allSettled([...this.#queues].map((queue) => queue.disconnect()));
    await Promise.allSettled([...this.#warehouses.values()].map((warehouse) => warehouse.close()));
    await this.#stack.stop();
    await rm(this.#directory, { recursive: true, force: true, maxRetries: 5 });
  }

  #servers(): ServiceEnvironment {
    const { url, user, password } = this.clickhouse;
    return {
      REDIS_URL: this.redisUrl,
      CLICKHOUSE_URL: url,
      CLICKHOUSE_USER: user,
      CLICKHOUSE_PASSWORD: password,
    };
  }

  #notePeak(service: 'ingest' | 'query', { pid }: ServiceProcess): void {
    const bytes = peakResidentBytes(pid);
    if (bytes !== undefined) this.peaks[service] = Math.max(bytes, this.peaks[service] ?? 0);
  }
}
