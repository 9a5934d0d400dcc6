/** The API under fuzzed requests: each response is what the model of requests says, and as the OpenAPI document describes it. */
import { randomUUID } from 'node:crypto';
import { BILLING_DIMENSIONS, DIMENSIONS } from '@meterline/catalog';
import { z } from 'zod';
import { checkAnswer } from '../harness/openapi-check.js';
import type { Product } from '../harness/product.js';
import { HttpClient, type RawAnswer } from './http-client.js';
import { type Caller, type CallerCase, requests as requestsFrom } from './request-cases.js';
import { expectedOutcome } from './request-model.js';
import { holds, watchMemory } from './run.js';

const LANES = 12;
/** What fuzzing may add to the memory of the process that answers. */
const MEMORY_BOUND_MIB = 300;
const ACCOUNT = 'acme';
/** Two workspaces, several resources, and events on every edge of the windows. */
const TIMES = ['1970-01-01T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-06T23:59:59.999Z', '2025-10-31T12:00:00Z'];
const USAGE = TIMES.flatMap((timestamp) =>
  BILLING_DIMENSIONS.flatMap((billingDimension, dimension) =>
    ['main', 'other'].map((workspace) => ({
      ...{ eventId: randomUUID(), accountId: ACCOUNT, workspace, billingDimension, timestamp, usage: dimension + 1 },
      resourceType: DIMENSIONS[billingDimension].resourceType,
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
  const client = new HttpClient(query.url, LANES);
  const statuses = new Set<number>();
  const document: unknown = await (await fetch(`${query.url}/openapi.json`)).json();
  const admin = await product.key(ACCOUNT);
  const callers = await callersOf(product, admin);
  const request = requestsFrom({ document, callers, foreignCursors: await cursorsOf(query.url, admin) });
  const memory = watchMemory(query.pid, MEMORY_BOUND_MIB);
  await holds(request, { count, lanes: LANES }, async (sent) => {
    const response = await client.send(sent).catch((error: Error) => {
      // A server may answer and close before it has read a large body; the client then sees a reset.
      if (sent.body === undefined || error.message.includes('not answered')) throw error;
    });
    if (!response) return;
    statuses.add(response.status);
    judge(sent, response);
  });
  client.close();
  memory();
  // Or nothing got past what is checked first.
  for (const status of [200, 400, 401, 403, 404]) if (!statuses.has(status)) throw new Error(`none was ${status}`);
}

/** The first is sent most. */
async function callersOf({ key, keys }: Product, admin: string): Promise<readonly [Caller, ...Caller[]]> {
  const [member, stranger] = [await key(ACCOUNT, 'member'), await key('globex')];
  const revoked = await keys.create({ account: ACCOUNT, role: 'admin', clientId: 'revoked' }, new Date());
  await keys.revoke(revoked.keyId, new Date());
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const admins = { [ACCOUNT]: 'admin' } as const;
  const unknown = ['garbage', revoked.key, admin.slice(0, -1), `${admin}${admin}`, 'eyJhbGciOiJub25lIn0.e30.'];
  return [
    { headers: bearer(admin), roles: admins },
    { headers: { ...bearer(admin), 'X-SVC-Authorization': `BEARER   ${admin}` }, roles: admins },
    // As behind a proxy that has Authorization for itself.
    { headers: { authorization: 'Basic YTpi', 'x-svc-authorization': `bearer ${admin}` }, roles: admins },
    { headers: bearer(member), roles: { [ACCOUNT]: 'member' } },
    { headers: bearer(stranger), roles: { globex: 'admin' } },
    { headers: {}, roles: '401 unauthorized' },
    ...unknown.map((token): Caller => ({ headers: bearer(token), roles: '401 unauthorized' })),
    { headers: { authorization: [`Bearer ${admin}`, `Bearer ${member}`] }, roles: '400 conflicting_credentials' },
    { headers: { ...bearer(admin), 'x-svc-authorization': 'Bearer x' }, roles: '400 conflicting_credentials' },
  ];
}

/** @throws Error with what is wrong with the answer */
function judge(sent: CallerCase, { status, headers, text }: RawAnswer): void {
  const wrong = (what: string) => new Error(`${what}: ${status} ${text.slice(0, 300)}`);
  // Outages and limits are documented, and may come instead of any answer.
  if ((status === 503 || status === 429) && headers.has('retry-after')) return;
  if (status >= 500) throw wrong(`status ${status}`);
  if (headers.get('x-request-id') === null) throw wrong('no X-Request-Id');
  const expected = expectedOutcome(sent);
  if (expected === undefined) return;
  const isJson = headers.get('content-type')?.startsWith('application/json') && text !== '';
  const body: unknown = isJson ? JSON.parse(text) : undefined;
  checkAnswer({ method: sent.method, path: sent.target.replace(/\?.*$/s, ''), status, headers, text, body });
  const outcome = outcomeOf(status, headers, body);
  const isExpected = body === undefined ? expected.startsWith(String(status)) : outcome.startsWith(expected);
  if (!isExpected) throw wrong(`${outcome} instead of ${expected}`);
}

/** The status and, for an error with a body, its code: `400 invalid_parameter`. An answer to HEAD has no body. */
function outcomeOf(status: number, headers: Headers, body: unknown): string {
  if (status < 400 || body === undefined) return String(status);
  const { code, error, requestId } = errorBody.parse(body);
  if (code !== status || requestId !== headers.get('x-request-id')) return `${status} with the body of ${code}`;
  return `${status} ${error}`;
}

/** Cursors for questions that the fuzz does not ask. */
async function cursorsOf(url: string, key: string): Promise<string[]> {
  const parameters = 'startTime=2025-10-01T00:00:00.001Z&endTime=2025-10-03T00:00:00Z&groupBy=resource_name&limit=1';
  const response = await fetch(`${url}/v0/accounts/${ACCOUNT}/metrics?${parameters}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return [...(await response.text()).matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) => cursor);
}
