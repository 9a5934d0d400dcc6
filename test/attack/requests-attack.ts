/** The API under fuzzed requests and fuzzed bytes. */
import type { Attack } from './attack.js';
import { fuzzBytes } from './byte-fuzz.js';
import { ACCOUNT, callersOf } from './callers.js';
import { HttpClient } from './http-client.js';
import { MemoryWatch } from './memory.js';
import { operationsOf } from './request-cases.js';
import { fuzzRequests } from './request-fuzz.js';
import { USAGE } from './seed-usage.js';

/** No answer takes as long, even on a machine that does much else. */
const PATIENCE_MS = 120_000;
/** What fuzzing may add to the memory of the process that answers. */
const MEMORY_BOUND_MIB = 300;

/** The rates of requests, far above what is sent here: a request over its rate is refused before it is read. */
const UNLIMITED = {
  QUERY_ACCOUNT_RATE: '100000',
  QUERY_ACCOUNT_BURST: '1000000',
  QUERY_CALLER_RATE: '100000',
  QUERY_CALLER_BURST: '1000000',
};

export const requestsAttack: Attack = {
  name: 'requests',
  what: 'requests from /openapi.json with hostile values, by 15 kinds of callers',
  run: async ({ site, random, requests, findings }) => {
    await site.store(USAGE);
    const query = await site.startQuery(UNLIMITED);
    const client = new HttpClient(query.url, { connections: 12, patienceMs: PATIENCE_MS });
    try {
      const document: unknown = await (await fetch(`${query.url}/openapi.json`)).json();
      const [admin, member, stranger, revoked] = await Promise.all([
        site.key(ACCOUNT),
        site.key(ACCOUNT, 'member'),
        site.key('globex'),
        site.revokedKey(ACCOUNT),
      ]);
      const source = {
        operations: operationsOf(document),
        callers: callersOf({ admin, member, stranger, revoked }),
        foreignCursors: await cursorsOf(query.url, admin),
      };
      const memory = new MemoryWatch(query.pid);
      const statuses = await fuzzRequests(client, source, { random, count: requests, findings });
      return {
        sent: `${requests} requests`,
        stood: `${listed(statuses)}; ${memory.judged(MEMORY_BOUND_MIB, findings)}`,
      };
    } finally {
      client.close();
      await query.kill();
    }
  },
};

export const bytesAttack: Attack = {
  name: 'bytes',
  what: 'bytes that are nearly HTTP, on sockets that are then half closed',
  run: async ({ site, random, requests, findings }) => {
    const query = await site.startQuery();
    const client = new HttpClient(query.url, { connections: 8, patienceMs: PATIENCE_MS });
    const count = Math.ceil(requests / 10);
    try {
      const memory = new MemoryWatch(query.pid);
      const statuses = await fuzzBytes(client, { random, count, findings });
      return {
        sent: `${count} connections`,
        stood: `${listed(statuses)}; ${memory.judged(MEMORY_BOUND_MIB, findings)}`,
      };
    } finally {
      client.close();
      await query.kill();
    }
  },
};

/** Cursors for questions that the fuzz does not ask. */
async function cursorsOf(url: string, key: string): Promise<string[]> {
  const parameters = 'startTime=2025-10-01T00:00:00.001Z&endTime=2025-10-03T00:00:00Z&groupBy=resource_name&limit=1';
  const response = await fetch(`${url}/v0/accounts/${ACCOUNT}/metrics?${parameters}`, {
    headers: { authorization: `Bearer ${key}` },
  });
  return [...(await response.text()).matchAll(/"nextCursor":"([^"]+)"/g)].map(([, cursor = '']) => cursor);
}

function listed(statuses: ReadonlyMap<number, number>): string {
  return [...statuses]
    .sort(([a], [b]) => a - b)
    .map(([status, count]) => `${count} × ${status}`)
    .join(', ');
}
