/** The run's own servers, and on them the product with a database and a queue for each bench. All are removed at the end. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { QUEUE_NAME } from '@meterline/catalog';
import { type Servers, startServers } from '@meterline/local-stack';
import { migrate } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { type Product, startProduct } from '../harness/product.js';
import { residentMiB, testProgram } from '../harness/programs.js';
import { type HttpProcess, NO_LIMITS, type ServiceProcess } from '../harness/services.js';
import { execute } from '../harness/stack.js';
import type { Figure } from './figure.js';

/** The largest data set's; an insert of a million rows may take long beside merges. */
const REQUEST_TIMEOUT_MS = 600_000;

export interface BenchContext {
  readonly fixture: Fixture;
  /** Events in the large data set. */
  readonly events: number;
  /** Aborted by Ctrl-C. */
  readonly signal: AbortSignal;
}

export interface Bench {
  /** For `--only`. */
  readonly name: string;
  readonly run: (context: BenchContext) => Promise<Figure[]>;
}

export class Fixture {
  /** The most resident memory of each service in this run, over all its processes, in MB. */
  readonly peaks = new Map<string, number>();
  readonly #servers: Servers;
  readonly #products = new Map<string, Product>();
  readonly #peers = new Set<ChildProcess>();

  private constructor(
    servers: Servers,
    readonly say: (line: string) => void,
  ) {
    this.#servers = servers;
  }

  static async open(dataDir: string, say: (line: string) => void): Promise<Fixture> {
    await mkdir(dataDir, { recursive: true });
    const directory = await mkdtemp(join(dataDir, 'bench-'));
    try {
      return new Fixture(await startServers({ dataDir: directory, say }), say);
    } catch (error) {
      await rm(directory, { recursive: true });
      throw error;
    }
  }

  /** The processes of the servers, by what a report calls them. */
  get serverPids(): { readonly ClickHouse: number; readonly Redis: number } {
    return { ClickHouse: this.#servers.clickhouse.pid, Redis: this.#servers.redis.pid };
  }

  has(database: string): boolean {
    return this.#products.has(database);
  }

  /** The product with this database, created at the first call, and a queue of its own. */
  async product(database: string): Promise<Product> {
    const known = this.#products.get(database);
    if (known) return known;
    const { clickhouse, redis } = this.#servers;
    const { url, user, password } = clickhouse;
    await migrate({ url, user, password, database, application: 'meterline-bench' });
    const own = { clickhouse, redisUrl: redis.url, database: { database, requestTimeoutMs: REQUEST_TIMEOUT_MS } };
    const product = await startProduct({ ...own, prefix: database });
    this.#products.set(database, product);
    return product;
  }

  /** Drops the database after the work. */
  async withProduct<T>(database: string, work: (product: Product) => Promise<T>): Promise<T> {
    const product = await this.product(database);
    const result = await work(product);
    this.#products.delete(database);
    await execute(product.warehouse, `DROP DATABASE ${database} SYNC`);
    await product.close();
    return result;
  }

  /** Runs a worker that seals nothing. */
  async withIngest<T>(product: Product, work: (worker: ServiceProcess) => Promise<T>): Promise<T> {
    return this.#during('ingest', await product.startIngest({ LOG_LEVEL: 'info' }), work);
  }

  /** Runs a query service. @param env default: callers have no limits */
  async withQuery<T>(product: Product, work: (query: HttpProcess) => Promise<T>, env = NO_LIMITS): Promise<T> {
    return this.#during('query', await product.startQuery(env), work);
  }

  /** Runs a collector whose callers have no limits. */
  async withCollector<T>(product: Product, work: (collector: HttpProcess) => Promise<T>): Promise<T> {
    const bytes = { maxBytes: 1_000_000_000, platformMaxBytes: 1_000_000_000 };
    const constants = JSON.stringify({ ...bytes, platformRate: 1_000_000 });
    const env = { ACCOUNT_RATE: '1000000', METERLINE_CONSTANTS: constants };
    return this.#during('collector', await product.startCollector(env), work);
  }

  async #during<P extends ServiceProcess, T>(name: string, service: P, work: (service: P) => Promise<T>): Promise<T> {
    try {
      return await work(service);
    } finally {
      this.peaks.set(name, Math.max(residentMiB(service.pid, 'VmHWM') ?? 0, this.peaks.get(name) ?? 0));
      await service.stop();
    }
  }

  /** Runs a part of `peers.ts` as a process. */
  async withPeer<T>(args: readonly (string | number)[], work: (pid: number) => Promise<T>): Promise<T> {
    const peer = fork(testProgram('bench/peers'), [this.#servers.redis.url, ...args.map(String)]);
    this.#peers.add(peer);
    const exited = once(peer, 'exit');
    try {
      return await work(peer.pid ?? 0);
    } finally {
      peer.kill('SIGTERM');
      await exited;
      this.#peers.delete(peer);
    }
  }

  /** A queue that no worker of the product takes from, for what a peer does. */
  async withQueue<T>(prefix: string, work: (queue: Queue) => Promise<T>): Promise<T> {
    const connection = { url: this.#servers.redis.url, maxRetriesPerRequest: null };
    const queue = new Queue(QUEUE_NAME, { connection, prefix });
    queue.on('error', () => undefined);
    return work(queue).finally(() => queue.close());
  }

  /** Ends every process and removes every file. */
  async close(): Promise<void> {
    for (const peer of this.#peers) peer.kill('SIGKILL');
    await Promise.allSettled([...this.#products.values()].map((product) => product.close()));
    await this.#servers.stop();
    await rm(this.#servers.directory.path, { recursive: true, force: true, maxRetries: 5 });
  }
}
