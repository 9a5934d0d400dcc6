/** Tests the client against a server that produces failures which the real API does not produce on demand. */
import { inspect } from 'node:util';
import { describe, expect, it } from '@jest/globals';
import fc from 'fast-check';
import { failureOf } from '../../../test/harness/failure.js';
import { json, type Respond, serve } from '../../../test/harness/serving.js';
import { ALL_ACCOUNTS, MeterlineClient, type MeterlineClientOptions, MeterlineConnectionError } from './index.js';
import { MAX_WAIT_MS, queryString, waitBeforeRetry } from './transport.js';

const WINDOW = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z' };
const UNAVAILABLE = {
  code: 503,
  error: 'storage_unavailable',
  message: 'Usage data cannot be read at the moment; try again shortly.',
  requestId: 'r-1',
};

const types = json(200, { values: ['agent'], addedLater: 1 });
const hangUp: Respond = (response) => response.destroy();
const hang: Respond = () => undefined;

type Settings = Pick<MeterlineClientOptions, 'fetch' | 'retries' | 'timeout'>;

function clientOf(url: string, settings: Settings = {}): MeterlineClient {
  return new MeterlineClient({ baseUrl: url, credential: 'secret', ...settings });
}

it.each([408, 429, 500, 502, 503, 504])('the client retries after a %d and its Retry-After', async (status) => {
  const { url, requests } = await serve(json(status, UNAVAILABLE, { 'retry-after': '0' }), types);
  expect(await clientOf(url).resourceTypes('acme', WINDOW)).toEqual(['agent']);
  expect(requests.map((request) => request.url)).toEqual([requests[0]?.url, requests[0]?.url]);
});

it('the client retries after a broken connection, also in the middle of a response', async () => {
  const cutOff: Respond = (response) => {
    response.writeHead(200, { 'content-length': '100' }).write('{"values":');
    setImmediate(() => response.destroy());
  };
  const { url, requests } = await serve(hangUp, cutOff, types);
  expect(await clientOf(url).resourceTypes('acme', WINDOW)).toEqual(['agent']);
  expect(requests).toHaveLength(3);
});

it('the client calls getCredential before every attempt', async () => {
  const { url, requests } = await serve(json(503, UNAVAILABLE, { 'retry-after': '0' }), types);
  let requested = 0;
  const getCredential = () => `token-${++requested}`;
  await new MeterlineClient({ baseUrl: url, getCredential }).resourceTypes('acme', WINDOW);
  expect(requests.map(({ headers }) => headers.authorization)).toEqual(['Bearer token-1', 'Bearer token-2']);
});

it('the client does not retry after the last attempt, after a 403, or if Retry-After is too long', async () => {
  const away = await serve(json(503, UNAVAILABLE, { 'retry-after': '0' }));
  expect(await failureOf(clientOf(away.url, { retries: 2 }).resourceTypes('acme', WINDOW))).toMatchObject({
    status: 503,
    code: 'storage_unavailable',
    requestId: 'r-1',
    retryAfter: 0,
  });
  expect(away.requests).toHaveLength(3);

  const denied = await serve(json(403, { ...UNAVAILABLE, code: 403, error: 'forbidden' }));
  expect(await failureOf(clientOf(denied.url).accounts())).toMatchObject({ status: 403, code: 'forbidden' });
  expect(denied.requests).toHaveLength(1);

  const busy = await serve(json(429, { ...UNAVAILABLE, code: 429, error: 'busy' }, { 'retry-after': '3600' }));
  expect(await failureOf(clientOf(busy.url).accounts())).toMatchObject({ status: 429, retryAfter: 3_600 });
  expect(busy.requests).toHaveLength(1);
});

it.each([408, 500, 502, 503, 504])(
  'the client does not retry a request that is not idempotent after a %d',
  async (status) => {
    const { url, requests } = await serve(json(status, UNAVAILABLE, { 'retry-after': '0' }));
    await expect(clientOf(url).createApiKey('a', { role: 'member', account: 'acme' })).rejects.toMatchObject({
      status,
    });
    expect(requests).toHaveLength(1);
  },
);

it('the client does not retry a revocation after a broken connection', async () => {
  const { url, requests } = await serve(hangUp);
  expect(await failureOf(clientOf(url).revokeApiKey('a', 'b'))).toBeInstanceOf(MeterlineConnectionError);
  expect(requests).toHaveLength(1);
});

it.each(['', '.', '..'])(
  'the client rejects the account name %j, because its URL would be a different resource',
  async (account) => {
    await expect(clientOf('http://127.0.0.1:1').metrics(account, WINDOW)).rejects.toThrow(TypeError);
  },
);

it('the client rejects ALL_ACCOUNTS in calls that need one account', async () => {
  await expect(clientOf('http://127.0.0.1:1').resourceTypes(ALL_ACCOUNTS, WINDOW)).rejects.toThrow('needs one account');
});

it.each(['{}', '{"credential":""}', '{"credential":null}', '{"apiKey":"mlk_1"}'])(
  'a client with the options %s is rejected, because it has no credential',
  (options) => {
    const open = () => new MeterlineClient({ baseUrl: 'http://127.0.0.1:1', ...JSON.parse(options) });
    expect(open).toThrow(
      new TypeError('credential must be an API key or access token, or getCredential a function that returns one'),
    );
  },
);

it('a function that returns no credential fails the call before a request', async () => {
  const client = new MeterlineClient({
    baseUrl: 'http://127.0.0.1:1',
    getCredential: () => JSON.parse('null'),
    retries: 0,
  });
  expect(await failureOf(client.accounts())).toBeInstanceOf(TypeError);
});

it('the error for a credential that does not fit into a header does not quote the credential', async () => {
  const client = new MeterlineClient({ baseUrl: 'http://127.0.0.1:1', credential: 'key mlk_secret\nof acme' });
  const failure = await failureOf(client.accounts());
  expect(failure).toBeInstanceOf(TypeError);
  expect(inspect(failure)).not.toContain('mlk_secret');
});

it('aborting and the timeout end the wait for a credential', async () => {
  const getCredential = () => new Promise<string>(() => undefined);
  const never = (timeout: number) =>
    new MeterlineClient({ baseUrl: 'http://127.0.0.1:9', getCredential, timeout, retries: 0 });
  const signal = AbortSignal.abort(new Error('the page was closed'));
  const aborted = new AbortController();
  const failure = failureOf(never(60_000).accounts({ signal: aborted.signal }));
  aborted.abort(signal.reason);
  expect(await failure).toBe(signal.reason);
  expect(await failureOf(never(10).accounts())).toMatchObject({
    message: 'getCredential did not respond within 0.01 s.',
  });
});

it('aborting ends the wait before a retry', async () => {
  const { url, requests } = await serve(json(503, UNAVAILABLE, { 'retry-after': '25' }));
  const controller = new AbortController();
  const failure = failureOf(clientOf(url).metrics('acme', WINDOW, { signal: controller.signal }));
  while (requests.length === 0) await new Promise(setImmediate);
  controller.abort();
  expect(await failure).toMatchObject({ name: 'AbortError' });
  expect(requests).toHaveLength(1);
});

it('aborting ends a request, and an aborted signal prevents it', async () => {
  const { url, requests } = await serve(hang);
  const controller = new AbortController();
  const failure = failureOf(clientOf(url).accounts({ signal: controller.signal }));
  while (requests.length === 0) await new Promise(setImmediate);
  controller.abort(new Error('the page was closed'));
  expect(await failure).toMatchObject({ message: 'the page was closed' });
  expect(await failureOf(clientOf(url).accounts({ signal: controller.signal }))).toMatchObject({
    message: 'the page was closed',
  });
  expect(requests).toHaveLength(1);
});

it('calls without a result reject a response that is not from the API', async () => {
  const { url } = await serve((response) => response.end('<html>Welcome</html>'));
  const client = clientOf(url);
  for (const call of [
    client.events('acme', WINDOW),
    client.revokeApiKey('robot', 'k'),
    client.alerts.delete('acme', 'alr_1'),
  ])
    expect(await failureOf(call)).toMatchObject({ status: 200, code: 'unexpected_response' });
});

it.each<[string, Respond, object]>([
  [
    'an error page of a proxy',
    (response) => response.writeHead(502, { 'x-request-id': 'p-1' }).end('<html>Bad gateway</html>'),
    { status: 502, code: 'unexpected_response', requestId: 'p-1' },
  ],
  [
    'a 200 response without JSON',
    (response) => response.end('<html>Welcome</html>'),
    { status: 200, code: 'unexpected_response' },
  ],
  [
    'a 200 response that does not match the schema',
    json(200, { values: ['agent', {}] }),
    { status: 200, code: 'unexpected_response', message: expect.stringContaining('(values[1]: Invalid') },
  ],
])('%s causes an unexpected_response error', async (_name, respond, expected) => {
  const { url } = await serve(respond);
  expect(await failureOf(clientOf(url).resourceTypes('acme', WINDOW))).toMatchObject(expected);
});

describe('a page of groups', () => {
  const point = { timestamp: '2025-10-01T00:00:00Z', cost: 1 };
  const page = (data: object[], nextCursor = '') =>
    json(200, {
      ...WINDOW,
      resolution: 'daily',
      summary: { totalCost: 3 },
      data,
      meta: { hasMore: nextCursor !== '', nextCursor },
    });
  const group = (workspace: string) => ({ workspace, summary: { cost: 1 }, timeseries: [point] });
  const query = { ...WINDOW, groupBy: ['workspace'] } as const;
  const expired = json(400, { ...UNAVAILABLE, code: 400, error: 'cursor_expired', message: 'Start again.' });

  it.each([
    [['workspace'], [group('a'), { ...group('b'), workspace: undefined }], 'data[1].workspace is missing'],
    [['billing_dimension'], [], 'summary.totalUsage is missing'],
  ] as const)('a page grouped by %s must have the fields of that grouping', async (groupBy, data, problem) => {
    const { url } = await serve(page([...data]));
    expect(await failureOf(clientOf(url).metrics('acme', { ...WINDOW, groupBy }))).toMatchObject({
      code: 'unexpected_response',
      message: expect.stringContaining(`(${problem})`),
    });
  });

  it('the error for a page without an amount contains the path of the amount', async () => {
    const { url } = await serve(page([{ ...group('a'), summary: {} }]));
    expect(await failureOf(clientOf(url).metrics('acme', query))).toMatchObject({
      message: expect.stringContaining('(data[0].summary.cost: must be a decimal)'),
    });
  });

  it('iteration fails with cursor_expired if the next page has expired', async () => {
    const { url } = await serve(page([group('a')], 'next'), expired);
    const read: string[] = [];
    const allPages = async () => {
      for await (const { workspace } of clientOf(url).metricsEntries('acme', query)) read.push(workspace);
    };
    expect(await failureOf(allPages())).toMatchObject({ code: 'cursor_expired', message: 'Start again.' });
    expect(read).toEqual(['a']);
  });

  it('allMetrics restarts if the next page has expired, at most twice', async () => {
    const first = page([group('a')], 'next');
    const { url, requests } = await serve(first, expired, first, expired, first, page([group('b')]));
    const counts: number[] = [];
    const options = { maxAgeSeconds: 15, onRead: (groups: number) => counts.push(groups) };
    const { data, meta } = await clientOf(url).allMetrics('acme', query, options);
    expect(counts).toEqual([1, 1, 1, 2]);
    expect([data.map(({ workspace }) => workspace), meta.hasMore]).toEqual([['a', 'b'], false]);
    // Only the first attempt may use a cached page.
    const ages = requests.map(({ headers }) => headers['cache-control']);
    expect(ages).toEqual(['max-age=15', 'max-age=15', ...Array.from({ length: 4 }, () => 'max-age=0')]);

    const changing = await serve(first, expired, first, expired, first, expired, first);
    expect(await failureOf(clientOf(changing.url).allMetrics('acme', query))).toMatchObject({ code: 'cursor_expired' });
    expect(changing.requests).toHaveLength(6);

    const denied = await serve(first, json(403, { ...UNAVAILABLE, code: 403, error: 'forbidden' }));
    expect(await failureOf(clientOf(denied.url).allMetrics('acme', query))).toMatchObject({ code: 'forbidden' });
    expect(denied.requests).toHaveLength(2);
  });
});

it.each([
  ['billing.example.com', 'such as https://billing.example.com or http://'],
  ['', 'such as https://billing.example.com or http://'],
  ['localhost:8080', 'such as https://billing.example.com or http://'],
  ['https://ann:secret@billing.example.com', 'without user and password, ? and #;'],
  ['https://billing.example.com?x=1', 'without user and password, ? and #;'],
])('the constructor rejects the address %j', (baseUrl, problem) => {
  expect(() => clientOf(baseUrl)).toThrow(TypeError);
  expect(() => clientOf(baseUrl)).toThrow(`baseUrl must be a URL ${problem}`);
});

it('a request without a response fails after the timeout', async () => {
  const { url } = await serve(hang);
  expect(await failureOf(clientOf(url, { timeout: 20, retries: 0 }).accounts())).toMatchObject({
    name: 'MeterlineConnectionError',
    message: `The API at ${url} did not respond within 0.02 s.`,
  });
});

it('a request whose body never arrives fails after the timeout, even if fetch ignores the signal', async () => {
  const endless = { ok: true, status: 200, headers: new Headers(), text: () => new Promise<string>(() => undefined) };
  const client = clientOf('http://127.0.0.1', { timeout: 20, retries: 0, fetch: async () => endless });
  expect(await failureOf(client.accounts())).toMatchObject({ message: expect.stringContaining('within 0.02 s') });
});

it('the error for a closed port has the cause', async () => {
  const { url, stop } = await serve(hang);
  stop();
  expect(await failureOf(clientOf(url, { retries: 1 }).accounts())).toMatchObject({
    name: 'MeterlineConnectionError',
    message: `The API at ${url} cannot be reached.`,
    cause: { cause: { code: 'ECONNREFUSED' } },
  });
});

it('the client rejects an empty filter, which would select everything, without sending a request', async () => {
  const { url, requests } = await serve(types);
  const query = (filters: object) => clientOf(url).metrics('acme', { ...WINDOW, ...filters });
  await expect(query({ workspace: [] })).rejects.toThrow('workspace must have at least one value, or be undefined');
  expect(requests).toEqual([]);
  expect(queryString({ ...WINDOW, groupBy: [], excludeWorkspace: [] })).not.toContain('orkspace');
});

it('events returns the first page that has events, or the last page, and its text', async () => {
  const page = (nextCursor: string) => json(200, { data: [], meta: { hasMore: nextCursor !== '', nextCursor } });
  const { url, requests } = await serve(page('one'), page('two'), page(''));
  const texts: string[] = [];
  const { meta } = await clientOf(url).events('acme', WINDOW, { onText: (text) => texts.push(text) });
  expect(meta.hasMore).toBe(false);
  expect(texts).toEqual([expect.stringContaining('"hasMore":false')]);
  expect(requests.map((request) => new URL(request.url ?? '', url).searchParams.get('cursor'))).toEqual([
    null,
    'one',
    'two',
  ]);
});

it('the client uses the given fetch, and requests the newest API version', async () => {
  const calls: [unknown, RequestInit | undefined][] = [];
  const stub: typeof fetch = async (input, init) => {
    calls.push([input, init]);
    return Response.json({ data: [], meta: { total: 0, hasMore: false, nextCursor: '' } });
  };
  const client = clientOf('https://billing.example.com/meterline/v0/', { fetch: stub });
  expect(await client.accounts()).toEqual([]);
  expect(calls).toMatchObject([
    [
      'https://billing.example.com/meterline/v0/accounts?sort=name%3Aasc&limit=200',
      { headers: { 'Svc-Version': '2026-04-28' } },
    ],
  ]);
});

it('the wait before a retry doubles up to eight seconds, half of it random', () => {
  const almostOne = 1 - 2 ** -53;
  expect([0, 1, 2, 5, 9].map((attempt) => waitBeforeRetry(attempt, undefined, almostOne))).toEqual([
    250, 500, 1_000, 8_000, 8_000,
  ]);
  expect(waitBeforeRetry(9, undefined, 0)).toBe(4_000);
});

it('the wait before a retry is at least Retry-After, at most 250 ms longer, and undefined above the maximum', () => {
  expect(waitBeforeRetry(0, MAX_WAIT_MS + 1, 0)).toBeUndefined();
  const random = fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true });
  fc.assert(
    fc.property(fc.nat(20), fc.nat(MAX_WAIT_MS), random, (attempt, requested, jitter) => {
      const wait = waitBeforeRetry(attempt, requested, jitter) ?? -1;
      expect(wait).toBeGreaterThanOrEqual(requested);
      expect(wait).toBeLessThanOrEqual(requested + 250);
    }),
  );
});
