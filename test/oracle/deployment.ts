/** A worker and a query service as processes, as in production, with their own queue and database. */
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AccountDirectory, ApiKeyStore, REDIS_PREFIX } from '@meterline/access';
import { QUEUE_NAME } from '@meterline/catalog';
import type { Shards } from '@meterline/warehouse';
import { QueueEvents } from 'bullmq';
import { openPipeline } from '../e2e/pipeline.js';
import { killServices, NO_LIMITS, startIngest, startQuery } from '../services.js';
import { select } from '../stack.js';
import { maskCursor, type OraclePriceBook, type OracleQuery, type OracleRole } from './model.js';
import type { Question } from './questions.js';

export interface Deployment {
  /** A part of account names that no other test file uses; Redis is shared. */
  readonly name: string;
  /** Sends one job for each item of data. Resolves with the jobs' ids when all are acknowledged. */
  deliver(data: readonly unknown[]): Promise<string[]>;
  /** Stops the worker, if one runs, and starts another with this price book. */
  startWorker(book: OraclePriceBook): Promise<void>;
  /** The database, for tests that seal and repair: the worker does neither. */
  readonly shards: Shards;
  /** Returns a reader with keys for the account, an admin's and a member's. */
  customer(accountId: string): Promise<Customer>;
  /** Which events of these jobs are in rejected_events, as "job position", sorted. */
  refused(jobIds: readonly string[]): Promise<string[]>;
  stop(): Promise<void>;
}

/** The bodies of all pages, cursors masked. */
export interface Answers {
  /** Answered from sealed cells where they exist. */
  readonly fromCells: string[];
  readonly fromEvents: string[];
  /** The same question to the first process again, which has kept its answer. */
  readonly fromMemory: string[];
}

export interface Customer {
  ask(question: Question): Promise<Answers>;
  /** The body of the enum of dimensions to group by. */
  groupByDimensions(): Promise<string>;
}

/** Paging that never ends must fail, not hang. */
const MAX_PAGES = 1_000;

export async function deploy(): Promise<Deployment> {
  const pipeline = await openPipeline();
  const { queue, redis, warehouse, shards, env } = pipeline;
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  const { CLICKHOUSE_DATABASE: name = '', REDIS_URL: url = '', QUEUE_PREFIX: prefix = '' } = env;
  const events = new QueueEvents(QUEUE_NAME, { connection: { url }, prefix });
  const acknowledgements = new Acknowledgements(events);
  const secret = { CURSOR_SECRET: 'a secret of the oracle, 32 characters or more', ...NO_LIMITS };
  const [cells, truth] = await Promise.all([
    startQuery({ ...env, ...secret }),
    startQuery({ ...env, ...secret, METRICS_SOURCE: 'events' }),
  ]);
  await events.waitUntilReady();
  const bookFile = join(tmpdir(), `${name}-price-book.json`);
  let worker: Awaited<ReturnType<typeof startIngest>> | undefined;
  let jobs = 0;

  return {
    name,
    shards,

    deliver: async (data) => {
      const batch = data.map((each) => {
        jobs += 1;
        return { name: 'usage', data: each, opts: { jobId: `job-${jobs}` } };
      });
      const ids = batch.map(({ opts }) => opts.jobId);
      const acknowledged = Promise.all(ids.map((id) => acknowledgements.of(id)));
      await queue.addBulk(batch);
      await acknowledged;
      return ids;
    },

    startWorker: async (book) => {
      await worker?.stop();
      await writeFile(bookFile, JSON.stringify(book));
      worker = await startIngest({
        ...env,
        PRICE_BOOK: bookFile,
        INGEST_FLUSH_MS: '25',
        SEAL_EVERY_MS: '0',
        REPAIR_EVERY_MS: '0',
      });
    },

    customer: async (accountId) => {
      const keyOf = async (role: OracleRole) =>
        (await keys.create({ account: accountId, role, clientId: `oracle, ${role}` }, new Date())).key;
      const own = { admin: await keyOf('admin'), member: await keyOf('member') };
      const rootOf = (url: string) => `${url}/v0/accounts/${encodeURIComponent(accountId)}/metrics`;
      const ask = async (url: string, { about, query, role = 'admin' }: Question) =>
        about === 'metrics'
          ? readPages(rootOf(url), own[role], query)
          : [await read(`${rootOf(url)}/enums/resource-types`, own[role], query)];
      return {
        ask: async (question) => {
          const [fromCells, fromEvents] = await Promise.all([ask(cells.url, question), ask(truth.url, question)]);
          return { fromCells, fromEvents, fromMemory: await ask(cells.url, question) };
        },
        groupByDimensions: () => read(`${rootOf(cells.url)}/enums/group-by`, own.admin, {}),
      };
    },

    refused: async (jobIds) => {
      const query = `SELECT concat(job_id, ' ', toString(position)) AS place FROM rejected_events FINAL
                     WHERE job_id IN {jobIds: Array(String)}`;
      return (await select<{ place: string }>(warehouse, query, { jobIds })).map(({ place }) => place).sort();
    },

    stop: async () => {
      await events.close();
      await killServices();
      await rm(bookFile, { force: true });
      await pipeline.close();
    },
  };
}

/** Tracks which jobs are done: BullMQ reports each once, and keeps only the last few. */
class Acknowledgements {
  readonly #waiting = new Map<string, { resolve: () => void; reject: (reason: Error) => void }>();

  constructor(events: QueueEvents) {
    events.on('completed', ({ jobId }) => this.#take(jobId)?.resolve());
    events.on('failed', ({ jobId, failedReason }) => this.#take(jobId)?.reject(new Error(`${jobId}: ${failedReason}`)));
  }

  /** Must be called before the job is added to the queue. */
  of(jobId: string): Promise<void> {
    return new Promise((resolve, reject) => this.#waiting.set(jobId, { resolve, reject }));
  }

  #take(jobId: string) {
    const waiting = this.#waiting.get(jobId);
    this.#waiting.delete(jobId);
    return waiting;
  }
}

async function readPages(root: string, key: string, query: OracleQuery): Promise<string[]> {
  const pages: string[] = [];
  let cursor = '';
  do {
    const page = await read(root, key, { ...query, ...(cursor !== '' && { cursor }) });
    cursor = /"nextCursor":"([^"]*)"\}\}$/.exec(page)?.[1] ?? '';
    pages.push(maskCursor(page));
  } while (cursor !== '' && pages.length < MAX_PAGES);
  return pages;
}

/** The text of the body. A status other than 200 is added to the text, so that a comparison shows it. */
async function read(url: string, key: string, parameters: object): Promise<string> {
  const sent = Object.entries(parameters).flatMap(([name, values]: [string, string | string[]]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const response = await fetch(`${url}?${new URLSearchParams(sent)}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  return response.status === 200 ? text : `${response.status} ${text}`;
}
