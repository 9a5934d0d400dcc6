/** What is fuzzed: ClickHouse, Redis, the query service and workers, all of this run alone. */
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { QUEUE_NAME, type UsageEventInput } from '@meterline/catalog';
import { type RunningClickHouse, type Servers, startServers } from '@meterline/local-stack';
import { AccountDirectory, ApiKeyStore, type KeyRole, REDIS_PREFIX } from '@meterline/service/access';
import { createWarehouse, migrate, type Warehouse, type WarehouseOptions } from '@meterline/warehouse';
import { Queue, QueueEvents } from 'bullmq';
import { Redis } from 'ioredis';
import {
  type HttpProcess,
  killServices,
  type ServiceEnvironment,
  type ServiceProcess,
  startCollector,
  startIngest,
  startQuery,
  withConstants,
} from '../harness/services.js';
import { databaseVariables } from '../harness/stack.js';

const DATABASE = 'meterline';
const CURSOR_SECRET = 'a secret of the fuzz runs, 32 characters or more';

export class FuzzSite {
  readonly redis: Redis;
  readonly warehouse: Warehouse;
  readonly #stack: Servers;
  readonly #keys: ApiKeyStore;

  private constructor(stack: Servers, warehouse: Warehouse) {
    this.#stack = stack;
    this.redis = new Redis(stack.redis.url);
    this.warehouse = warehouse;
    this.#keys = new ApiKeyStore(this.redis, new AccountDirectory(this.redis, REDIS_PREFIX), REDIS_PREFIX);
  }

  static async open(): Promise<FuzzSite> {
    const dataDir = await mkdtemp(join(tmpdir(), 'meterline-fuzz-'));
    try {
      const stack = await startServers({ dataDir });
      const options = databaseOf(stack);
      await migrate(options);
      return new FuzzSite(stack, createWarehouse(options));
    } catch (error) {
      await rm(dataDir, { recursive: true });
      throw error;
    }
  }

  get redisUrl(): string {
    return this.#stack.redis.url;
  }

  get clickhouse(): RunningClickHouse {
    return this.#stack.clickhouse;
  }

  get environment(): ServiceEnvironment {
    return { REDIS_URL: this.redisUrl, CURSOR_SECRET, ...databaseVariables(databaseOf(this.#stack)) };
  }

  startQuery(env: ServiceEnvironment = {}): Promise<HttpProcess> {
    return startQuery({ ...this.environment, ...env });
  }

  startCollector(env: ServiceEnvironment = {}): Promise<HttpProcess> {
    return startCollector({ REDIS_URL: this.redisUrl, ...env });
  }

  startWorker(env: ServiceEnvironment = {}): Promise<ServiceProcess> {
    return startIngest(withConstants({ ...this.environment, ...env }, { maintenanceEveryMs: 2_000 }));
  }

  /** Sends events through the queue to a worker of its own and waits until they are stored. */
  async store(events: readonly UsageEventInput[]): Promise<void> {
    const prefix = `store-${randomUUID()}`;
    const worker = await this.startWorker({ QUEUE_PREFIX: prefix });
    const queue = new Queue(QUEUE_NAME, { prefix, connection: { url: this.redisUrl } });
    const ended = new QueueEvents(QUEUE_NAME, { prefix, connection: { url: this.redisUrl } });
    const job = await queue.add('usage', { events });
    await job.waitUntilFinished(ended);
    await Promise.all([queue.close(), ended.close(), worker.stop()]);
  }

  /** The text of a new key. */
  async key(account: string, role: KeyRole = 'admin', clientId = `fuzz ${role}`): Promise<string> {
    return (await this.#keys.create({ account, role, clientId }, new Date())).key;
  }

  async revokedKey(account: string): Promise<string> {
    const { key, keyId } = await this.#keys.create({ account, role: 'admin', clientId: 'revoked' }, new Date());
    await this.#keys.revoke(keyId, new Date());
    return key;
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    await killServices();
    this.redis.disconnect();
    await this.warehouse.close();
    await Promise.all([this.#stack.clickhouse.kill(), this.#stack.redis.kill()]);
    await rm(this.#stack.directory.path, { recursive: true, maxRetries: 5 });
  }
}

function databaseOf({ clickhouse }: Servers): WarehouseOptions {
  const { url, user, password } = clickhouse;
  return { url, user, password, database: DATABASE, application: 'fuzz' };
}
