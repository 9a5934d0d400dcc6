/**
 * The API under fuzzed requests, of which each response is as the OpenAPI document describes it and none shows anything to who may not see it,
 * and under bytes that HTTP forbids: well-formed requests with bytes changed, left out, doubled or moved. Which request gets which response
 * is in test/contract: errors, metrics, authorisation.
 */
import { randomUUID } from 'node:crypto';
import { expect } from '@jest/globals';
import { BUILT_IN_DIMENSION_NAMES, BUILT_IN_DIMENSIONS } from '@meterline/catalog';
import * as fc from 'fast-check';
import { z } from 'zod';
import { exchange, HttpClient, type RawResponse } from '../contract/raw-http.js';
import { checkResponse } from '../harness/openapi-check.js';
import type { Product } from '../harness/product.js';
import { type Caller, type CallerCase, requests as requestsFrom } from './request-cases.js';
import { holds, watchMemory } from './run.js';

const PARALLEL = 12;
/** What fuzzing may add to the memory of the process that answers. */
const MEMORY_BOUND_MIB = 300;
const ACCOUNT = 'acme';
/** Two workspaces, several resources, and events on every edge of the windows. */
const TIMES = ['1970-01-01T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-06T23:59:59.999Z', '2025-10-31T12:00:00Z'];
const USAGE = TIMES.flatMap((timestamp) =>
  BUILT_IN_DIMENSION_NAMES.flatMap((billingDimension, dimension) =>
    ['main', 'other'].map((workspace) => ({
      ...{ eventId: randomUUID(), accountId: ACCOUNT, workspace, billingDimension, timestamp, usage: dimension + 1 },
      resourceType: BUILT_IN_DIMENSIONS[billingDimension].resourceType,
      resourceName: `box-${dimension % 3}`,
      ...(workspace === 'main' && { resourceUuid: `uuid-${dimension}` }),
    })),
  ),
);

const errorBody = z.object({ code: z.number(), error: z.string(), requestId: z.string() });

export async function fuzzRequests(product: Product, count: number): Promise<void> {
  const worker = await product.startIngest();
  await product.send(...USAGE);
  await worker.stop();
  const query = await product.startQuery({ ACCOUNT_RATE: '100000' });
  const client = new HttpClient(query.url, PARALLEL);
  const statuses = new Set<number>();
  const document: unknown = await (await fetch(`${query.url}/openapi.json`)).json();
  const admin = await product.key(ACCOUNT);
  const callers = await callersOf(product, admin);
  const request = requestsFrom({ document, callers, foreignCursors: await cursorsOf(query.url, admin) });
  const memory = watchMemory(query.pid, MEMORY_BOUND_MIB);
  await holds(request, { count, parallel: PARALLEL }, async (sent) => {
    const response = await client.send(sent).catch((error: Error) => {
      // A server may answer and close before it has read a large body; the client then sees a reset.
      if (sent.body === undefined || error.name === 'AbortError') throw error;
    });
    if (!response) return;
    statuses.add(response.status);
    judge(sent, response);
  });
  client.close();
  memory();
  // Otherwise nothing got past what is checked first.
  for (const status of [200, 400, 401, 403, 404]) if (!statuses.has(status)) throw new Error(`none was ${status}`);
}

/** The first is sent most. */
async function callersOf({ key, keys }: Product, admin: string): Promise<readonly [Caller, ...Caller[]]> {
  const [member, stranger] = [await key(ACCOUNT, 'member'), await key('globex')];
  const revoked = await keys.create({ account: ACCOUNT, role: 'admin', clientId: 'revoked' }, new Date());
  await keys.revoke(revoked.keyId, new Date());
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const unknown = ['garbage', revoked.key, admin.slice(0, -1), `${admin}${admin}`, 'eyJhbGciOiJub25lIn0.e30.'];
  return [
    { headers: bearer(admin), account: ACCOUNT },
    { headers: { ...bearer(admin), 'X-SVC-Authorization': `BEARER   ${admin}` }, account: ACCOUNT },
    // As behind a proxy that has Authorization for itself.
    { headers: { authorization: 'Basic YTpi', 'x-svc-authorization': `bearer ${admin}` }, account: ACCOUNT },
    { headers: bearer(member), account: ACCOUNT },
    ...Array<Caller>(4).fill({ headers: bearer(stranger), account: 'globex' }),
    { headers: {} },
    ...unknown.map((token) => ({ headers: bearer(token) })),
    { headers: { authorization: [`Bearer ${admin}`, `Bearer ${member}`] } },
    { headers: { ...bearer(admin), 'x-svc-authorization': 'Bearer x' } },
  ];
}

/** @throws Error with what is wrong with the response */
function judge({ method, target, caller }: CallerCase, { status, headers, text }: RawResponse): void {
  const wrong = (what: string) => new Error(`${what}: ${status} ${text.slice(0, 300)}`);
  // Outages and limits are documented, and may come instead of any response.
  if ((status === 503 || status === 429) && headers.has('retry-after')) return;
  if (status >= 500) throw wrong(`status ${status}`);
  const requestId = headers.get('x-request-id');
  if (requestId === null) throw wrong('no X-Request-Id');
  const path = target.replace(/\?.*$/s, '');
  if (status < 400 && path.startsWith('/v0/') && !isOwn(path, caller)) throw wrong('shown to who may not see it');
  // What a cache has already: RFC 9110, section 13.1.2. Such a response is in no OpenAPI document.
  if (status === 304) return;
  const isJson = headers.get('content-type')?.startsWith('application/json') && text !== '';
  const body: unknown = isJson ? JSON.parse(text) : undefined;
  checkResponse({ method, path, status, headers, text, body });
  if (status < 400 || body === undefined) return;
  expect(errorBody.parse(body)).toMatchObject({ code: status, requestId });
}

/** Whether the caller of a path that the API has is known, and of the account that the path names. */
function isOwn(path: string, { account }: Caller): boolean {
  const [, named] = /^\/v0\/accounts\/([^/]+)\//.exec(path) ?? [];
  return account !== undefined && (named === undefined || decodeURIComponent(named) === account);
}

/** Cursors for queries that the fuzz does not ask. */
async function cursorsOf(url: string, key: string): Promise<string[]> {
  const parameters = 'startTime=2025-10-01T00:00:00.001Z&endTime=2025-10-03T00:00:00Z&groupBy=resource_name&limit=1';
  const response = await fetch(`${url}/v0/accounts/${ACCOUNT}/metrics?${parameters}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return [...(await response.text()).matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) => cursor);
}

const STATUS_LINE = /^HTTP\/1\.1 (\d{3}) /gm;
/** What RFC 9110 has for a method that a server does not know, and for a version that it does not speak. */
const OF_HTTP_ITSELF = [501, 505];

const request: fc.Arbitrary<string> = fc.constantFrom(
  'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'GET /v0/accounts?limit=1 HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nConnection: close\r\n\r\n',
  'POST /v0/accounts HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello',
  'POST /v0/accounts HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n5\r\nhello\r\n0\r\n\r\n',
  'POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\n\r\n',
  'GET /healthz HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n',
  'GET http://other.example/healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'OPTIONS * HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n',
  'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'GET /healthz HTTP/1.0\r\n\r\n',
  'FOO /healthz HTTP/1.1\r\nHost: x\r\n\r\n',
);
const inserted: fc.Arbitrary<string> = fc.oneof(
  fc.constantFrom(...'\r|\n|\r\n|\0| |\t|:|\x7f|\xff|%|/|\r\n\r\n|HTTP/1.1|0\r\n\r\n'.split('|')),
  fc.constantFrom(1, 100, 60_000).map((times) => 'x'.repeat(times)),
);
/** Between two bytes: some text comes in, some bytes go or come twice, or all that follows is missing. */
const change = fc.record({ at: fc.nat(150), text: inserted, skip: fc.integer({ min: -20, max: 8 }), cut: fc.nat(9) });
const nearlyHttp = fc.tuple(request, fc.array(change, { maxLength: 4 })).map(([text, changes]) =>
  changes.reduce<string>((sent, { at, text: added, skip, cut }) => {
    const from = Math.min(at, sent.length);
    return sent.slice(0, from) + (cut === 0 ? '' : added + sent.slice(Math.max(0, from + skip)));
  }, text),
);

export async function fuzzBytes(product: Product, count: number): Promise<void> {
  const query = await product.startQuery();
  const memory = watchMemory(query.pid, MEMORY_BOUND_MIB);
  await holds(nearlyHttp, { count, parallel: PARALLEL }, async (text) => {
    const response = await exchange(query.url, text);
    for (const [, digits] of response.matchAll(STATUS_LINE)) {
      const status = Number(digits);
      if (status >= 500 && !OF_HTTP_ITSELF.includes(status)) throw new Error(`status ${status}`);
    }
  });
  memory();
}
