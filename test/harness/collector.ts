/** A collector as a process of its own, and how the tests send to it and read what it has put into the queue. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { createOpenApiDocument } from '@meterline/collector';
import { z } from 'zod';
import { adminUrl, scrape } from '../observability/scrape.js';
import { usageEvent } from './events.js';
import { responseCheck } from './openapi-check.js';
import { type Intake, openIntake } from './product.js';
import type { HttpProcess, ServiceEnvironment } from './services.js';

interface TestResponse {
  readonly status: number;
  readonly headers: Headers;
  readonly body: unknown;
}

export interface CollectorFixture extends Intake {
  readonly service: HttpProcess;
  /** An account that no other test uses, and the key of an emitter of it. */
  account(): Promise<{ readonly account: string; readonly key: string }>;
  send(key: string, body: BodyInit, options?: SendOptions): Promise<TestResponse>;
  /** JSON, with these credentials. */
  sendAs(credentials: Readonly<Record<string, string>>, body: string): Promise<TestResponse>;
  /** The events of each job in the queue, the oldest first, and takes them out. */
  takeJobs(): Promise<readonly (readonly Record<string, unknown>[])[]>;
}

export interface SendOptions {
  readonly type?: string;
  readonly query?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

const jobData = z.object({ events: z.array(z.record(z.string(), z.unknown())) });

/** @param env of the collector, besides the address of Redis */
export async function startCollectorFixture(
  env: ServiceEnvironment = {},
  redisUrl?: string,
): Promise<CollectorFixture> {
  const intake = openIntake({ redisUrl });
  const { queue, key } = intake;
  const service = await intake.startCollector(env);
  return {
    ...intake,
    service,
    account: async () => {
      const account = `account-${randomUUID()}`;
      return { account, key: await key(account, 'emitter') };
    },
    send: (credential, body, { type = 'application/json', query = '', headers = {} } = {}) =>
      post(`${service.url}/v0/events${query}`, body, {
        authorization: `Bearer ${credential}`,
        ...(type !== '' && { 'content-type': type }),
        ...headers,
      }),
    sendAs: (credentials, body) =>
      post(`${service.url}/v0/events`, body, {
        'content-type': 'application/json',
        ...credentials,
      }),
    takeJobs: async () => {
      const jobs = await queue.getJobs(['waiting'], 0, -1, true);
      const data = jobs.map((job) => jobData.parse(job.data).events);
      await Promise.all(jobs.map((job) => job.remove()));
      return data;
    },
  };
}

/** Each response is compared with the OpenAPI document. */
async function post(url: string, body: BodyInit, headers: Readonly<Record<string, string>>): Promise<TestResponse> {
  const response = await fetch(url, { method: 'POST', body, headers });
  const text = await response.text();
  const result = {
    status: response.status,
    headers: response.headers,
    body: text === '' ? undefined : JSON.parse(text),
  };
  checkResponse({ ...result, method: 'POST', path: new URL(url).pathname, text });
  return result;
}

const checkResponse = responseCheck(createOpenApiDocument());

/** Sends the head of a request to a collector, and these bytes of its body. */
export async function begin(
  { url }: HttpProcess,
  key: string,
  length: number,
  body: string | Buffer,
  headers: readonly string[] = [],
): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on('error', () => undefined);
  await once(socket, 'connect');
  const credential = [`Authorization: Bearer ${key}`, 'Content-Type: application/json', `Content-Length: ${length}`];
  const head = ['POST /v0/events HTTP/1.1', 'Host: collector', ...credential, ...headers];
  socket.write([...head, '\r\n'].join('\r\n'));
  socket.write(body);
  return socket;
}

/** @param service a collector with ADMIN_PORT */
export async function inFlight(service: HttpProcess): Promise<number> {
  return (await scrape(await adminUrl(service))).value('meterline_collector_in_flight_bytes') ?? Number.NaN;
}

/** An event that is accepted, without account. */
export function event(change: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  const { accountId: _, ...accepted } = usageEvent(0, { eventId: randomUUID() });
  return { ...accepted, ...change };
}

export const eventsResponse = z.object({
  accepted: z.number(),
  rejected: z.number(),
  results: z.array(
    z.strictObject({
      index: z.number(),
      eventId: z.string().optional(),
      status: z.literal('rejected'),
      reason: z.string(),
      message: z.string(),
    }),
  ),
});
