/** The API under fuzzed requests: each response is what the model of requests says, and as the OpenAPI document describes it. */
import { z } from 'zod';
import { checkAnswer } from '../harness/openapi-check.js';
import { ACCOUNT, callersOf } from './callers.js';
import { HttpClient, type RawAnswer } from './http-client.js';
import { type CallerCase, requests as requestsFrom } from './request-cases.js';
import { expectedOutcome } from './request-model.js';
import { type Fuzz, holds, Statuses, watchMemory } from './run.js';
import { USAGE } from './seed-usage.js';

const LANES = 12;
/** What fuzzing may add to the memory of the process that answers. */
const MEMORY_BOUND_MIB = 300;
/** The rates of requests, far above what is sent here: a request over its rate is refused before it is read. */
const UNLIMITED = { ACCOUNT_RATE: '100000' };

const errorBody = z.object({ code: z.number(), error: z.string(), requestId: z.string() });

export const requestsFuzz: Fuzz = {
  name: 'requests',
  what: 'requests from /openapi.json with hostile values, by 17 kinds of callers',
  run: async ({ site, seed, requests: count }) => {
    await site.store(USAGE);
    const query = await site.startQuery(UNLIMITED);
    const client = new HttpClient(query.url, LANES);
    const statuses = new Statuses();
    try {
      const document: unknown = await (await fetch(`${query.url}/openapi.json`)).json();
      const [admin, member, stranger, revoked] = await Promise.all([
        site.key(ACCOUNT),
        site.key(ACCOUNT, 'member'),
        site.key('globex'),
        site.revokedKey(ACCOUNT),
      ]);
      const callers = callersOf({ admin, member, stranger, revoked });
      const request = requestsFrom({ document, callers, foreignCursors: await cursorsOf(query.url, admin) });
      const memory = watchMemory(query.pid, MEMORY_BOUND_MIB);
      await holds(request, { seed, count, lanes: LANES }, async (sent) => {
        const answer = await client.send(sent).catch((error: Error) => {
          // A server may answer and close before it has read a large body; the client then sees a reset.
          if (sent.body === undefined || error.message.includes('not answered')) throw error;
        });
        if (!answer) return;
        statuses.add(answer.status);
        judge(sent, answer);
      });
      return { sent: `${count} requests`, stood: `${statuses}; ${memory()}` };
    } finally {
      client.close();
      await query.kill();
    }
  },
};

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
