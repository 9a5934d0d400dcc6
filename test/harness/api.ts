/** The query API in this process, on a port of its own, and how the contract tests ask it. */

import { RateLimiter, type RateLimits, startServer } from '@meterline/api';
import {
  Admission,
  type AdmissionLimits,
  createApp,
  type QueryDependencies,
  ResponseCache,
  StoredGroups,
} from '@meterline/query';
import {
  ApiKeyStore,
  createRedisClient,
  type KeyRole,
  REDIS_POLICIES,
  readRedisStatus,
} from '@meterline/service/access';
import { AlertStore } from '@meterline/service/alerts';
import { ViewStore } from '@meterline/service/views';
import { createWarehouse, insertUsageEvents, type PricedEvent, rollupStateReader } from '@meterline/warehouse';
import { pino } from 'pino';
import { z } from 'zod';
import { checkResponse } from './openapi-check.js';
import { createTestDatabase, testRedisUrl, uniquePrefix } from './stack.js';

export interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined when the body is not JSON. */
  readonly body: unknown;
}

export interface TestApi {
  readonly url: string;
  readonly keys: ApiKeyStore;
  readonly dependencies: QueryDependencies;
  /** Set it to move the service's clock. */
  readonly clock: { now: Date };
  /** The request log, one parsed line each. */
  readonly log: unknown[];
  /** @param account undefined: a key for all accounts */
  key(account: string | undefined, role?: KeyRole, clientId?: string): Promise<string>;
  request(path: string, init?: RequestInit): Promise<TestResponse>;
  seed(events: readonly PricedEvent[]): Promise<void>;
  stop(): Promise<void>;
}

export const NOW = new Date('2025-11-15T12:00:00Z');

/** The policy of every page but the one that others may embed. */
export const PAGE_POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; " +
  "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** More than any test asks that is not about them. */
export const NO_LIMITS: AdmissionLimits & RateLimits = {
  process: 8,
  account: 8,
  caller: 8,
  accountRate: { requests: 10_000, seconds: 1 },
  callerRate: { requests: 10_000, seconds: 1 },
  maxWaitMs: 60_000,
  maxWaiting: 1_000,
  maxWaitingOfAccount: 1_000,
};

/**
 * Starts the API with a database of its own, unless `replace` has a warehouse, such as the one of another API.
 * @param clickHouse away: no ClickHouse responds, and starting takes no time for a database
 */
export async function startApi(
  replace: Partial<QueryDependencies> = {},
  clickHouse: 'responds' | 'away' = 'responds',
): Promise<TestApi> {
  const { warehouse, drop } = await warehouseFor(replace, clickHouse);
  const redis = createRedisClient(testRedisUrl(), REDIS_POLICIES.request);
  await redis.connect();
  const prefix = uniquePrefix();
  const keys = new ApiKeyStore(redis, prefix);
  const clock = { now: NOW };
  const log: unknown[] = [];
  const dependencies: QueryDependencies = {
    warehouse,
    readRollupState: rollupStateReader(warehouse),
    cache: new ResponseCache(16 * 1024 * 1024),
    storedGroups: new StoredGroups(redis, prefix, 400_000),
    admission: new Admission({
      limits: NO_LIMITS,
      rates: new RateLimiter({ limits: NO_LIMITS }),
      warehouse,
    }),
    maxInFlightBytes: 64 * 1024 * 1024,
    keys,
    accounts: keys.accounts,
    alerts: new AlertStore(redis, prefix),
    views: new ViewStore(redis, prefix),
    allowedHosts: new Set(),
    sendsMail: true,
    pageUrl: 'https://billing.example.com',
    tokens: undefined,
    protectedResource: undefined,
    redisStatus: () => readRedisStatus(redis),
    isStopping: () => false,
    cursorSecret: 'a secret of the contract tests, 32 characters or more',
    collectorUrl: undefined,
    frameAncestors: [],
    clock: () => clock.now,
    log: pino({ level: 'debug' }, { write: (line: string) => log.push(JSON.parse(line)) }),
    corsOrigins: [],
    trustProxy: false,
    pageFolder: undefined,
    watchers: [],
    ...replace,
  };
  const server = await startServer(createApp(dependencies), { port: 0, log: dependencies.log });
  const url = `http://127.0.0.1:${server.port}`;
  return {
    url,
    keys,
    dependencies,
    clock,
    log,
    key: async (account, role = 'admin', clientId = `${role} of ${account}`) =>
      (await keys.create({ account, role, clientId }, clock.now)).key,
    request: (path, init) => send(`${url}${path}`, init),
    seed: (events) => insertUsageEvents(warehouse, events),
    stop: async () => {
      await server.close(0);
      redis.disconnect();
      await drop();
    },
  };
}

async function warehouseFor(replace: Partial<QueryDependencies>, clickHouse: 'responds' | 'away') {
  if (replace.warehouse) return { warehouse: replace.warehouse, drop: async () => undefined };
  if (clickHouse === 'responds') return createTestDatabase();
  // Nothing can listen on port 1 without the permission of the system.
  const server = { url: 'http://127.0.0.1:1', user: 'default', password: '', database: 'meterline' };
  const warehouse = createWarehouse({ ...server, application: 'meterline-test' });
  return { warehouse, drop: () => warehouse.close() };
}

/** All pages, of which there must be less than a thousand; the cursor of the first is empty. */
export async function allPages<Page extends { readonly meta: { readonly nextCursor: string } }>(
  read: (cursor: string) => Promise<Page>,
): Promise<Page[]> {
  const pages: Page[] = [];
  let cursor = '';
  do {
    const page = await read(cursor);
    pages.push(page);
    cursor = page.meta.nextCursor;
  } while (cursor !== '' && pages.length < 1_000);
  return pages;
}

/** Each response is compared with the OpenAPI document. */
async function send(url: string, init?: RequestInit): Promise<TestResponse> {
  const response = await fetch(url, init);
  const { headers, status } = response;
  const text = await response.text();
  const isJson = headers.get('content-type')?.startsWith('application/json') && text !== '';
  const result = { status, headers, text, body: isJson ? JSON.parse(text) : undefined };
  checkResponse({ ...result, method: init?.method ?? 'GET', path: new URL(url).pathname });
  return result;
}

export function bearer(token: string): { headers: Record<string, string> } {
  return { headers: { authorization: `Bearer ${token}` } };
}

export type Query = Readonly<Record<string, string>>;

/** A day in October, which every test that is not about the window can use. */
export const DAY = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z' } as const;

export function metricsPath(account: string, query: Query | string): string {
  return `/v0/accounts/${encodeURIComponent(account)}/metrics?${typeof query === 'string' ? query : new URLSearchParams(query)}`;
}

const point = z.strictObject({ timestamp: z.string(), cost: z.number(), usage: z.number().optional() });
export const metricsBody = z.strictObject({
  startTime: z.string(),
  endTime: z.string(),
  resolution: z.string(),
  summary: z.strictObject({ totalCost: z.number(), totalUsage: z.number().optional() }),
  data: z.array(
    z.strictObject({
      account: z.string().optional(),
      workspace: z.string().optional(),
      resourceType: z.string().optional(),
      resourceName: z.string().optional(),
      resourceUuid: z.string().optional(),
      billingDimension: z.string().optional(),
      summary: z.strictObject({ cost: z.number(), usage: z.number().optional() }),
      timeseries: z.array(point),
    }),
  ),
  meta: z.strictObject({ hasMore: z.boolean(), nextCursor: z.string() }),
});
export type MetricsBody = z.output<typeof metricsBody>;

/** Asks for metrics and insists on 200 and on the shape of docs/api-contract.md. */
export async function readMetrics(api: TestApi, account: string, key: string, query: Query): Promise<MetricsBody> {
  const result = await api.request(metricsPath(account, query), bearer(key));
  if (result.status !== 200) throw new Error(`${result.status}: ${result.text}`);
  return metricsBody.parse(result.body);
}

export const errorBody = z.strictObject({
  code: z.number(),
  error: z.string(),
  message: z.string(),
  details: z.array(z.record(z.string(), z.string())).optional(),
  requestId: z.string(),
});
export type ErrorBody = z.output<typeof errorBody>;

/** The response as an error; that the body repeats status and request id is a part of its shape. */
export function errorOf(result: TestResponse): ErrorBody {
  const error = errorBody.parse(result.body);
  if (error.code !== result.status) throw new Error(`code ${error.code} under status ${result.status}`);
  if (error.requestId !== result.headers.get('x-request-id')) throw new Error('requestId is not X-Request-Id');
  return error;
}
