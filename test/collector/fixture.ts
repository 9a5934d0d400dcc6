/** A collector as a process of its own, and how the tests send to it and read what it has put into the queue. */
import { randomUUID } from 'node:crypto';
import { AccountDirectory, ApiKeyStore, type KeyRole, REDIS_PREFIX } from '@meterline/access';
import { QUEUE_NAME } from '@meterline/catalog';
import { createOpenApiDocument } from '@meterline/collector';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { z } from 'zod';
import { answerCheck } from '../contract/openapi-check.js';
import { type HttpProcess, type ServiceEnvironment, startCollector } from '../services.js';
import { testRedisUrl, uniquePrefix } from '../stack.js';

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface CollectorSite {
  readonly service: HttpProcess;
  readonly redis: Redis;
  readonly keys: ApiKeyStore;
  readonly queuePrefix: string;
  /** An account that no other test uses, and the key of an emitter of it. */
  account(): Promise<{ readonly account: string; readonly key: string }>;
  key(account: string, role: KeyRole): Promise<string>;
  send(account: string, key: string, body: BodyInit, options?: SendOptions): Promise<Answer>;
  /** JSON, with these credentials. */
  sendAs(credentials: Readonly<Record<string, string>>, account: string, body: string): Promise<Answer>;
  /** The events of each job in the queue, the oldest first, and takes them out. */
  takeJobs(): Promise<readonly (readonly Record<string, unknown>[])[]>;
  stop(): Promise<void>;
}

export interface SendOptions {
  readonly type?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const jobData = z.object({ events: z.array(z.record(z.string(), z.unknown())) });

/** @param env of the collector, besides the address of Redis */
export async function startCollectorSite(
  env: ServiceEnvironment = {},
  redisUrl = testRedisUrl(),
): Promise<CollectorSite> {
  const queuePrefix = uniquePrefix();
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue(QUEUE_NAME, { connection: redis, prefix: queuePrefix });
  // A test may kill Redis.
  for (const client of [queue, redis]) client.on('error', () => undefined);
  const keys = new ApiKeyStore(redis, new AccountDirectory(redis, REDIS_PREFIX), REDIS_PREFIX);
  const service = await startCollector({ REDIS_URL: redisUrl, QUEUE_PREFIX: queuePrefix, ...env });
  const key = async (account: string, role: KeyRole) =>
    (await keys.create({ account, role, clientId: `${role} of ${account}` }, new Date())).key;
  return {
    service,
    redis,
    keys,
    queuePrefix,
    key,
    account: async () => {
      const account = `account-${randomUUID()}`;
      return { account, key: await key(account, 'emitter') };
    },
    send: (account, credential, body, { type = 'application/json', query = '', headers = {} } = {}) =>
      post(`${service.url}/v0/accounts/${encodeURIComponent(account)}/events${query}`, body, {
        authorization: `Bearer ${credential}`,
        ...(type !== '' && { 'content-type': type }),
        ...headers,
      }),
    sendAs: (credentials, account, body) =>
      post(`${service.url}/v0/accounts/${account}/events`, body, {
        'content-type': 'application/json',
        ...credentials,
      }),
    takeJobs: async () => {
      const jobs = await queue.getJobs(['waiting'], 0, -1, true);
      const data = jobs.map((job) => jobData.parse(job.data).events);
      await Promise.all(jobs.map((job) => job.remove()));
      return data;
    },
    stop: async () => {
      await service.stop();
      await queue.obliterate({ force: true });
      await queue.close();
      redis.disconnect();
    },
  };
}

/** Each answer is compared with the OpenAPI document. */
async function post(url: string, body: BodyInit, headers: Readonly<Record<string, string>>): Promise<Answer> {
  const response = await fetch(url, { method: 'POST', body, headers });
  const text = await response.text();
  const answer = {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
  checkAnswer({ ...answer, method: 'POST', path: new URL(url).pathname, text });
  return answer;
}

const checkAnswer = answerCheck(createOpenApiDocument());

/** An event that is accepted, without account. */
export function event(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return {
    eventId: randomUUID(),
    workspace: 'production',
    resourceType: 'agent',
    resourceName: 'support',
    billingDimension: 'agent_compute_runtime_gbs',
    usage: 12.5,
    timestamp: '2025-10-02T09:00:00Z',
    ...change,
  };
}

export const eventsAnswer = z.object({
  accepted: z.number(),
  refused: z.number(),
  results: z.array(
    z.strictObject({
      index: z.number(),
      eventId: z.string().optional(),
      status: z.enum(['accepted', 'refused']),
      reason: z.string().optional(),
      message: z.string().optional(),
    }),
  ),
});
