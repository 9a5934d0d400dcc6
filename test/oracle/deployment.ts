/** A worker and a query service as processes, as in production, with their own queue and database. */
import { rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { QUEUE_NAME } from '@meterline/catalog';
import type { Shards } from '@meterline/warehouse';
import { QueueEvents } from 'bullmq';
import { startTokenIssuer } from '../contract/callers.js';
import { startProduct } from '../harness/product.js';
import { NO_LIMITS, UNLIMITED } from '../harness/services.js';
import { select } from '../harness/stack.js';
import { until } from '../harness/waiting.js';
import { CATALOG } from './event-rules.js';
import { maskedPages, type OraclePriceBook, type OracleQuery, type OracleRole } from './model.js';
import type { Request } from './requests.js';

export interface Deployment {
  /** Sends one job for each item of data. Resolves with the jobs' ids when all are acknowledged. */
  deliver(data: readonly unknown[]): Promise<string[]>;
  /** The database, for tests that seal and recompute: the worker does neither. */
  readonly shards: Shards;
  /** Returns a reader with keys for the account, an admin's and a member's, and tokens for it and the second. */
  customer(accountId: string, second?: string): Promise<Customer>;
  /** Which events of these jobs are in rejected_events, as "job position", sorted. */
  rejected(jobIds: readonly string[]): Promise<string[]>;
  stop(): Promise<void>;
}

/** The bodies of all pages, cursors masked. */
interface Responses {
  /** Answered from sealed rollup rows where they exist. */
  readonly fromRollups: string[];
  readonly fromEvents: string[];
  /** The responses of the first process to the same query again, from memory. */
  readonly fromMemory: string[];
}

interface Customer {
  /** @param query that of the query, with the names of the accounts */
  ask(request: Request, query?: OracleQuery): Promise<Responses>;
}

/** With the catalog of the oracle's rules. @param book the worker's */
export async function deploy(book: OraclePriceBook): Promise<Deployment> {
  const product = await startProduct();
  const { queue, warehouse, shards, env } = product;
  const { CLICKHOUSE_DATABASE: name = '', REDIS_URL: url = '', QUEUE_PREFIX: prefix = '' } = env;
  const acknowledgements = new QueueEvents(QUEUE_NAME, { connection: { url }, prefix });
  for (const emitter of [queue, acknowledgements]) emitter.setMaxListeners(0);
  const issuer = await startTokenIssuer();
  const files = {
    CATALOG: join(tmpdir(), `${name}-catalog.json`),
    PRICE_BOOK: join(tmpdir(), `${name}-price-book.json`),
  };
  await writeFile(files.CATALOG, JSON.stringify(CATALOG));
  await writeFile(files.PRICE_BOOK, JSON.stringify(book));
  const ofQuery = { ...NO_LIMITS, ...issuer.env, CATALOG: files.CATALOG };
  const [rollups, truth] = await Promise.all([
    product.startQuery(ofQuery),
    product.startQuery({
      ...ofQuery,
      METERLINE_CONSTANTS: JSON.stringify({ ...UNLIMITED, eventsOnly: 1 }),
    }),
  ]);
  await acknowledgements.waitUntilReady();
  const tokenOf = (sub: string, accounts: Readonly<Record<string, OracleRole>>) =>
    issuer.sign({ sub, exp: Math.floor(Date.now() / 1_000) + 86_400, accounts });
  // The keys come from this process, which may be too busy for their deadline once cases run. They are kept for a day.
  const headers = { authorization: `Bearer ${await tokenOf(name, {})}` };
  for (const { url } of [rollups, truth]) {
    await until('tokens can be checked', async () => (await fetch(`${url}/v0/accounts`, { headers })).ok);
  }
  await product.startIngest({ ...files, METERLINE_CONSTANTS: JSON.stringify({ flushMs: 25 }) });

  return {
    shards,

    deliver: async (data) => {
      const jobs = await queue.addBulk(data.map((each) => ({ name: 'usage', data: each })));
      await Promise.all(jobs.map((job) => job.waitUntilFinished(acknowledgements)));
      return jobs.map(({ id }) => id ?? '');
    },

    customer: async (accountId, second = accountId) => {
      const own = { admin: await product.key(accountId), member: await product.key(accountId, 'member') };
      const both = {
        admin: await tokenOf(accountId, { [second]: 'admin', [accountId]: 'admin' }),
        member: await tokenOf(accountId, { [second]: 'member', [accountId]: 'admin' }),
      };
      const rootOf = (url: string) => `${url}/v0/accounts/${encodeURIComponent(accountId)}/metrics`;
      const ask = async (url: string, { about, role = 'admin' }: Request, query: OracleQuery) => {
        const pages = (root: string, key: string) =>
          maskedPages((cursor) => read(root, key, { ...query, ...(cursor !== '' && { cursor }) }));
        if (about === 'metrics') return pages(rootOf(url), own[role]);
        if (about === 'metrics of both accounts') return pages(`${url}/v0/metrics`, both[role]);
        return [await read(`${rootOf(url)}/enums/resource-types`, own[role], query)];
      };
      return {
        ask: async (request, query = request.query) => {
          const requested = [request, query] as const;
          const [fromRollups, fromEvents] = await Promise.all([
            ask(rollups.url, ...requested),
            ask(truth.url, ...requested),
          ]);
          return { fromRollups, fromEvents, fromMemory: await ask(rollups.url, ...requested) };
        },
      };
    },

    rejected: async (jobIds) => {
      const query = `SELECT concat(job_id, ' ', toString(position)) AS place FROM rejected_events FINAL
                     WHERE job_id IN {jobIds: Array(String)}`;
      return (await select<{ place: string }>(warehouse, query, { jobIds })).map(({ place }) => place).sort();
    },

    stop: async () => {
      await acknowledgements.close();
      for (const file of Object.values(files)) await rm(file, { force: true });
      await product.close();
      await issuer.close();
    },
  };
}

/** The text of the body. A status other than 200 is added to the text, so that a comparison shows it, and the log, too. */
async function read(url: string, key: string, parameters: object): Promise<string> {
  const sent = Object.entries(parameters).flatMap(([name, values]: [string, string | string[]]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const response = await fetch(`${url}?${new URLSearchParams(sent)}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  const text = await response.text();
  if (response.status === 200) return text;
  process.stdout.write(`oracle: ${url}: ${response.status} ${text}\n`);
  return `${response.status} ${text}`;
}
