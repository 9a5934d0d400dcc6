/** A usual question is answered without Express. It must not show, except in the time that it takes. */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { type RunningServer, startServer, type Watcher } from '@meterline/api';
import { createRoutes } from '@meterline/query';
import { z } from 'zod';
import { bearer, DAY, event, metricsPath, type Query, startApi, type TestApi } from './fixture.js';
import { checkAnswer } from './openapi-check.js';

/** Which way requests have come, by their ids: Express tells a request its route. */
const ways = new Map<string, 'direct' | 'Express'>();
const noteWay: Watcher = (request, response, next) => {
  response.once('close', () => {
    ways.set(String(response.getHeader('x-request-id')), 'route' in request ? 'Express' : 'direct');
  });
  next();
};

let api: TestApi;
let express: RunningServer;
let headersOf: Record<'admin' | 'member' | 'stranger' | 'nobody', Record<string, string>>;
beforeAll(async () => {
  api = await startApi({ watchers: [noteWay], corsOrigins: ['https://console.example.com'] });
  express = await startServer(createRoutes(api.dependencies), { port: 0, log: api.dependencies.log });
  const of = async (account: string, role: 'admin' | 'member') => bearer(await api.key(account, role)).headers;
  headersOf = {
    admin: await of('acme', 'admin'),
    member: await of('acme', 'member'),
    stranger: await of('globex', 'admin'),
    nobody: {},
  };
  await api.seed(['a', 'b'].map((workspace) => event({ accountId: 'acme', workspace, resourceName: 'büro' })));
});
afterAll(async () => {
  await express.close(0);
  await api.stop();
});

/** What differs from one request to the next. */
const CHANGING: ReadonlySet<string> = new Set(['date', 'x-request-id', 'ratelimit', 'content-length']);
const logged = z.looseObject({ requestId: z.string().optional() });

async function ask(url: string, path: string, init: RequestInit) {
  const answer = await fetch(`${url}${path}`, init);
  const text = await answer.text();
  const id = answer.headers.get('x-request-id') ?? '';
  const { headers, status } = answer;
  if (status !== 304)
    checkAnswer({
      status,
      headers,
      text,
      body: text && JSON.parse(text),
      method: 'GET',
      path: new URL(path, url).pathname,
    });
  for (;;) {
    const line = logged
      .array()
      .parse(api.log)
      .find(({ requestId }) => requestId === id);
    const way = ways.get(id);
    if (!line || !way) {
      await new Promise((resolve) => setImmediate(resolve));
      continue;
    }
    const { time: _time, durationMs, pid: _pid, ...rest } = line;
    return {
      way,
      answer: {
        status,
        headers: [...headers].filter(([name]) => !CHANGING.has(name)),
        changing: [...headers.keys()].filter((name) => CHANGING.has(name)),
        body: text.replaceAll(id, 'the id'),
        line: { ...rest, requestId: rest.requestId === id, durationMs: typeof durationMs },
      },
    };
  }
}

/** Twice each way: computed by one of them, and kept. */
async function askBothWays(query: Query | string, headers: Record<string, string>) {
  const path = metricsPath('acme', query);
  const [direct, throughExpress] = [`${api.url}`, `http://127.0.0.1:${express.port}`];
  const asked = [];
  for (const url of [direct, throughExpress, direct, throughExpress]) asked.push(await ask(url, path, { headers }));
  return asked;
}

const HOURS = { ...DAY, resolution: 'hourly' };

describe('a usual question is answered, and logged, in the same way', () => {
  it.each([
    ['admin', 'in gzip', HOURS, { 'accept-encoding': 'gzip, deflate, br' }, [200, 'gzip']],
    ['admin', 'that is short', { ...DAY, resolution: 'daily' }, { 'accept-encoding': 'gzip' }, [200, null]],
    ['admin', 'by two dimensions', { ...HOURS, groupBy: 'workspace,resource_name' }, {}, [200, 'gzip']],
    ['admin', 'under a version', HOURS, { 'svc-version': '2026-04-28' }, [200, 'gzip']],
    ['member', 'of a member', HOURS, {}, [200, 'gzip']],
    ['member', 'that a member may not ask', { ...DAY, groupBy: 'workspace' }, {}, [403, null]],
    ['stranger', 'about another account', DAY, {}, [403, null]],
    ['nobody', 'without a key', DAY, {}, [401, null]],
    ['nobody', 'with a key that never was', DAY, { authorization: 'Bearer mlk_nobody' }, [401, null]],
    ['admin', 'with an unknown parameter', { ...DAY, filler: '1' }, {}, [400, null]],
    ['admin', 'under a version that does not exist', DAY, { 'svc-version': '2000-01-01' }, [400, null]],
  ] as const)('by %s, %s', async (who, _what, query, headers, [status, coding]) => {
    const [first, ...others] = await askBothWays(query, { ...headersOf[who], ...headers });
    expect(first?.answer.status).toBe(status);
    expect(new Map(first?.answer.headers).get('content-encoding') ?? null).toBe(coding);
    expect(others.map(({ answer }) => answer)).toEqual(others.map(() => first?.answer));
    if (status === 200) expect(others.map(({ way }) => way)).toEqual(['Express', 'direct', 'Express']);
  });

  it('and so is one whose answer the client has', async () => {
    const [first] = await askBothWays(HOURS, headersOf.admin);
    const etag = new Map(first?.answer.headers).get('etag') ?? '';
    const [again, ...others] = await askBothWays(HOURS, { ...headersOf.admin, 'if-none-match': etag });
    expect([again?.answer.status, again?.answer.body]).toEqual([304, '']);
    expect(others.map(({ answer }) => answer)).toEqual(others.map(() => again?.answer));
  });
});

describe('Express gets', () => {
  it.each([
    ['a coding that is not gzip', HOURS, { 'accept-encoding': 'br' }, 'br'],
    ['a weight', HOURS, { 'accept-encoding': 'gzip;q=0.5, br;q=0' }, 'gzip'],
    ['no coding at all', HOURS, { 'accept-encoding': 'identity' }, null],
    ['a name that is not ASCII', { ...HOURS, resourceName: 'büro' }, {}, 'gzip'],
    ['what is not UTF-8', 'resourceName=%ff', {}, null],
    ['a page of another origin', HOURS, { origin: 'https://console.example.com' }, 'gzip'],
  ])('%s', async (_what, query, headers, coding) => {
    const asked = await askBothWays(query, { ...headersOf.admin, ...headers });
    expect(asked.map(({ answer }) => new Map(answer.headers).get('content-encoding') ?? null)).toEqual(
      asked.map(() => coding),
    );
    const [first] = asked;
    expect(asked.map(({ answer }) => answer)).toEqual(asked.map(() => first?.answer));
    if (first?.answer.status === 200) expect(new Set(asked.map(({ way }) => way))).toEqual(new Set(['Express']));
  });
});
