/** A queue on a real Redis, and workers on it that say what they took. */
import { QUEUE_NAME } from '@meterline/catalog';
import { type Job, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { ManyJobsWorker, type ShortWay } from '../services/ingest/src/many-jobs-worker.js';
import type { PlainJob } from '../services/ingest/src/plain-jobs.js';
import { QueueConnection } from '../services/ingest/src/queue-connection.js';
import { type JobData, RawDataWorker } from '../services/ingest/src/raw-data-worker.js';
import { testRedisUrl, uniquePrefix } from './stack.js';

export const url = testRedisUrl();

type Work = (job: Job<JobData, void>, token: string | undefined) => Promise<void>;

export interface Opened {
  readonly worker: RawDataWorker;
  readonly connection: QueueConnection;
  /** In the order in which they were taken. */
  readonly taken: string[];
  readonly errors: Error[];
  /** How many commands ran a script. */
  scripts(): number;
}

interface Options {
  readonly prefix?: string;
  readonly takesMany?: boolean;
  /** Of plain jobs, instead of the other. */
  readonly shortWork?: (job: PlainJob) => Promise<void>;
  readonly concurrency?: number;
  readonly lockDuration?: number;
  readonly onUnknownScripts?: () => void;
  readonly changeScripts?: boolean;
}

export class Stage {
  prefix = uniquePrefix();
  queue = new Queue(QUEUE_NAME, { connection: { url }, prefix: this.prefix });
  redis = new Redis(url);
  /** The jobs that were acknowledged. */
  done: string[] = [];
  readonly #opened = new Set<Opened>();

  open(work: Work = async () => undefined, options: Options = {}): Opened {
    const {
      shortWork,
      takesMany = true,
      concurrency = 500,
      lockDuration = 15_000,
      onUnknownScripts = () => undefined,
    } = options;
    const connection = new QueueConnection({ url, knowsScriptFlags: true, readsUsageJobs: true });
    if (options.changeScripts) changeScripts(connection);
    let scripts = 0;
    const send = connection.redis.sendCommand.bind(connection.redis);
    connection.redis.sendCommand = (...args: Parameters<Redis['sendCommand']>) => {
      if (args[0].name.startsWith('eval')) scripts += 1;
      return send(...args);
    };
    const settings = {
      connection: connection.redis,
      prefix: options.prefix ?? this.prefix,
      concurrency,
      lockDuration,
      // Redis takes whole milliseconds.
      stalledInterval: Math.ceil(lockDuration / 3),
      maxStalledCount: Number.MAX_SAFE_INTEGER,
      runRetryDelay: 100,
      autorun: false,
    };
    const taken: string[] = [];
    const errors: Error[] = [];
    const shortWay: ShortWay = {
      taken: (jobs) => taken.push(...jobs.map(({ id }) => id)),
      begin: (job, end) => {
        if (!shortWork) return false;
        shortWork(job).then(
          () => end(true),
          () => end(false),
        );
        return true;
      },
      acknowledged: (jobs) => this.done.push(...jobs.map(({ id }) => id)),
    };
    const worker = takesMany
      ? new ManyJobsWorker(QUEUE_NAME, work, settings, { connection, shortWay, onUnknownScripts })
      : new RawDataWorker(QUEUE_NAME, work, settings);
    worker.on('active', ({ id = '' }) => taken.push(id));
    worker.on('completed', ({ id = '' }) => this.done.push(id));
    worker.on('error', (error) => errors.push(error));
    const all = { worker, connection, taken, errors, scripts: () => scripts };
    this.#opened.add(all);
    return all;
  }

  /** It says nothing more to Redis: no lock is renewed, and no job acknowledged. */
  kill(dead: Opened): void {
    this.#opened.delete(dead);
    dead.connection.redis.disconnect();
    void dead.worker.close(true).catch(() => undefined);
  }

  /** @returns the ids */
  async add(count: number): Promise<string[]> {
    const jobs = await this.queue.addBulk(Array.from({ length: count }, (_, n) => ({ name: 'usage', data: { n } })));
    return jobs.map(({ id = '' }) => id);
  }

  key(name: string): string {
    return `${this.prefix}:${QUEUE_NAME}:${name}`;
  }

  async isEmpty(): Promise<boolean> {
    const counts = await this.queue.getJobCounts('waiting', 'active', 'delayed', 'prioritized');
    return Object.values(counts).every((count) => count === 0);
  }

  async close(): Promise<void> {
    for (const { worker, connection } of this.#opened) {
      await worker.close();
      connection.redis.disconnect();
    }
    await this.queue.obliterate({ force: true });
    await this.queue.close();
    this.redis.disconnect();
  }
}

/** As another release of BullMQ would have them. */
function changeScripts({ redis: connection }: QueueConnection): void {
  const define = connection.defineCommand.bind(connection);
  connection.defineCommand = (name, definition) =>
    define(name, { ...definition, lua: `${definition.lua}\n-- changed` });
}

export async function until(isTrue: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await isTrue())) await new Promise((resolve) => setTimeout(resolve, 10));
}
