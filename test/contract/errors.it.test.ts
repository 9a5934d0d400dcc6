/**
 * The errors of the API: rejected requests with status, code and text, and the responses while a server is away. The rules of parameters and
 * bodies are unit tests of services/query/src (metrics/request, http/body, http/paging); here each route has at least one error. Who may do
 * what is in the authorisation matrix, and requests that no HTTP client would send are in http.
 */
import { createServer } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import type { TokenVerifier } from '@meterline/api';
import type { QueryDependencies } from '@meterline/query';
import { ApiKeyStore, createRedisClient, REDIS_POLICIES, readRedisStatus } from '@meterline/service/access';
import { createWarehouse } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, DAY, errorOf, metricsPath, startApi, type TestApi, type TestResponse } from '../harness/api.js';
import { listening } from '../harness/listening.js';
import { testClickHouseUrl, testRedisUrl } from '../harness/stack.js';

type Caller = 'admin' | 'member' | 'emitter' | 'operator' | 'stranger' | 'nobody' | 'somebody unknown';
/**
 * `at`: the parameters or members that the details name, in alphabetical order. `text`: a part of the message and of the details.
 * A request ends with its version, unless that is the first one.
 */
type Row = readonly [
  request: string,
  outcome: string,
  at: string,
  text: string,
  caller?: Caller,
  body?: string | undefined,
];

const ACME = '/v0/accounts/acme';
const day = String(new URLSearchParams(DAY));
const METRICS = `GET ${ACME}/metrics?${day}`;
const TYPES = `GET ${ACME}/metrics/enums/resource-types?${day}`;
const ENUMS = `GET ${ACME}/metrics/enums`;
const KEYS = '/v0/service_accounts/robot/api_keys';
const NO_ALERT = `${ACME}/alerts/alr_${'0'.repeat(24)}`;
const RECENT = ' @2026-04-28';
const [PARAMETER, BODY, FORBIDDEN] = ['400 invalid_parameter', '400 invalid_body', '403 forbidden'];
const NEW_KEY = '{"role":"member"}';

const bad = (request: string, at: string, text = at, caller: Caller = 'admin', body?: string): Row => {
  return [request, PARAMETER, at, text, caller, body];
};

const PARAMETERS: readonly Row[] = [
  bad(
    `${METRICS}&label=a&from=1&limit=0`,
    'from,label,limit',
    '"from" is not a parameter; the parameters are startTime',
  ),
  bad(`GET /v0/metrics?${day}&accountId=acme`, 'accountId', 'account, excludeAccount'),
  bad(`GET /v0/metrics?${day}&groupBy=x`, 'groupBy'),
  bad(`${TYPES}&limit=5`, 'limit', '"limit" is not a parameter'),
  bad(`${ENUMS}/group-by?startTime=x`, 'startTime', '"startTime" is not a parameter; this operation takes none.'),
  bad(`${ENUMS}/billing-dimensions?unit=gbs`, 'unit', 'this operation takes none.'),
  bad(
    `GET ${ACME}/events?${day}&groupBy=workspace&includeVoided=yes&limit=0&orderBy=time&order=down`,
    'groupBy,includeVoided,limit,order,orderBy',
    'limit must',
  ),
  bad('GET /v0/accounts?limit=5', 'limit', 'Svc-Version: 2026-04-28, the first version with pages and an order.'),
  bad(`GET /v0/accounts?sort=createdAt${RECENT}`, 'sort', 'name:desc'),
  bad(`GET ${KEYS}?limit=2`, 'limit', 'Svc-Version: 2026-04-28'),
  bad(`GET ${KEYS}?sort=name:asc${RECENT}`, 'sort'),
  bad(`GET ${KEYS}?account=`, 'account', 'account is empty'),
  bad(`GET ${ACME}/api_keys?account=acme`, 'account', 'this operation takes none'),
  [`GET ${KEYS}?account=globex${RECENT}`, FORBIDDEN, '', 'Access denied'],
  bad(`GET ${ACME}/alerts?workspace=main`, 'workspace'),
  bad(`DELETE ${KEYS}/${'0'.repeat(24)}?force=1`, 'force'),
  bad(`POST ${KEYS}?force=1`, 'force', 'force', 'admin', NEW_KEY),
  bad(`POST ${ACME}/alerts?x=1`, 'x', 'takes none', 'admin', '{}'),
  [`POST ${ACME}/alerts?x=1`, FORBIDDEN, '', 'Only an admin', 'member', '{}'],
  [`GET /v0/accounts?cursor=nonsense${RECENT}`, '400 invalid_cursor', '', ''],
  ...['%', '%zz', '%ff', '%ed%a0%80', '%c0%af'].map(
    (wrong): Row => [`${METRICS}&workspace=${wrong}`, '400 malformed_url', '', ''],
  ),
];

const create = (body: string, at: string, text: string): Row => [`POST ${KEYS}`, BODY, at, text, 'admin', body];
const alert = (change: object, at: string, text: string): Row => {
  return [`POST ${ACME}/alerts`, BODY, at, text, 'admin', JSON.stringify({ ...ALERT_SETTINGS, ...change })];
};

const BODIES: readonly Row[] = [
  ...['', 'role=member'].map((text) => create(text, 'body', 'The body must be a JSON object in UTF-8, such as')),
  create('{"role":"x","expiresAt":"x","ttl":1}', 'expiresAt,role,ttl', 'role must be one of'),
  create('{"role":"member","expiresAt":"2025-11-15T12:00:00Z"}', 'expiresAt', 'expiresAt must be in the future.'),
  [`POST ${KEYS}`, FORBIDDEN, '', 'Access denied', 'admin', '{"role":"admin","account":"globex"}'],
  ...['x'.repeat(257), 'a\u0000b'].map((clientId) =>
    bad(`POST ${KEYS.replace('robot', encodeURIComponent(clientId))}`, 'clientId', 'clientId', 'admin', NEW_KEY),
  ),
  ['POST /v0/accounts/acme/events', '405 method_not_allowed', '', 'POST /v0/events', 'nobody', '{}'],
  ...['[]', JSON.stringify('x'.repeat(20_000))].map(
    (body): Row => ['POST /v0/events', '404 not_found', '', 'at the address of the collector.', 'nobody', body],
  ),
  ['GET /v0/events', '404 not_found', '', '/docs lists the operations of this service. Send events', 'nobody'],
  alert({ amount: '0' }, 'amount', 'amount must be a decimal string above 0'),
  ...[{}, { billingDimension: ['volume_storage_gbs', 'agent_async_requests_count'] }].map((filters) =>
    alert({ measure: 'usage', filters }, 'filters.billingDimension', 'exactly one value if measure is usage'),
  ),
  alert({ url: 'http://example.com/' }, 'url', 'url must begin with https://'),
  alert({ url: 'http://example.com/', amount: '0' }, 'amount,url', 'amount must be a decimal string above 0'),
  alert({ url: 'ftp://example.com/' }, 'url', 'url must be an https URL of at most 2048 characters'),
  alert({ url: 'https://0x7f.1/' }, 'url', 'url must not be an address of this machine or of a private network'),
  ...['slack', 'teams'].flatMap((format) => [
    alert({ format, url: 'http://hooks.example.com/T0' }, 'url', 'url must begin with https://'),
    alert({ format, url: 'https://10.0.0.7/T0' }, 'url', 'url must not be an address of this machine'),
    alert({ format, url: 'https://hooks.example.com' }, 'url', 'url must be the whole URL of the incoming webhook'),
  ]),
  alert({ url: undefined }, 'url', 'url is missing: an alert needs url, or to for e-mail.'),
  alert({ to: ['a@example.com'] }, 'to', 'to is for alerts without url'),
  alert({ url: undefined, to: ['a@example.com'], format: 'slack' }, 'format', 'format is only for url.'),
  alert({ thresholds: [] }, 'thresholds', 'thresholds must not be empty without forecast.'),
  alert({ period: 'day', forecast: [100] }, 'forecast', 'forecast is only for the period month'),
];

const NOT_THERE: readonly Row[] = [
  ...['/', '/v0', '/v0/accounts/', '/V0/accounts', `${ACME}/`, `${ACME}/metrics/`, '/v0/nope'].map(
    (path): Row => [`GET ${path}`, '404 not_found', '', 'There is no', 'nobody'],
  ),
  ...['/v0/accounts/', `${ACME}/metrics/`, '/docs//'].map((path): Row => {
    const meant = path.replace(/\/+$/, '');
    return [`GET ${path}`, '404 not_found', '', `paths of the API do not end with a slash, try ${meant}.`, 'nobody'];
  }),
  ...['unknown', '*', '../api-keys', '\u{1f600}', '0'.repeat(24)].map(
    (id): Row => [`DELETE ${KEYS}/${encodeURIComponent(id)}`, '404 not_found', '', ''],
  ),
  [`GET ${KEYS}`, '404 not_found', '', 'it has no key in the accounts that this list covers.'],
  ...['GET', 'PATCH', 'DELETE'].map(
    (method): Row => [`${method} ${NO_ALERT}`, '404 not_found', '', 'no such alert', 'admin', '{}'],
  ),
  [`GET ${NO_ALERT}?x=1`, '404 not_found', '', 'no such alert'],
];

const forbidden = (caller: Caller, text: string, ...requests: string[]) =>
  requests.map((request): Row => [request, FORBIDDEN, '', text, caller]);
const ofAll = (query: string) => `GET /v0/metrics?${day}&${query}`;

const ACCESS: readonly Row[] = [
  // An account that does not exist gets the same response as the account of another customer.
  ...forbidden(
    'stranger',
    'Access denied The account does not exist, or your key or token has no access to it.',
    ...['acme', 'does-not-exist', 'GLOBEX', 'globex%20', 'a%2Fb', '__proto__', 'constructor'].map(
      (account) => `GET /v0/accounts/${account}/metrics?${day}`,
    ),
  ),
  ...forbidden(
    'admin',
    'Access denied The account does not exist',
    ...['account=globex', 'account=nobody', 'excludeAccount=globex', 'account=acme&account=globex', 'account=ACME'].map(
      ofAll,
    ),
  ),
  ...forbidden(
    'member',
    'Access denied Only an admin of the account may do this',
    ...[`${METRICS}&excludeWorkspace=main`, `${TYPES}&excludeWorkspace=main`, ofAll('account=acme&workspace=main')],
  ),
  ...forbidden('emitter', 'role emitter', METRICS, `GET ${KEYS}`),
  ...forbidden('operator', 'role operator', `POST ${KEYS}`, `DELETE ${KEYS}/${'0'.repeat(24)}`),
  // The order of the checks: credentials, version, account, parameters, the role of an admin.
  [`GET ${ACME}/metrics?startTime=x @1999-01-01`, '401 unauthorized', '', '', 'somebody unknown'],
  [`GET ${ACME}/metrics?startTime=x @1999-01-01`, '400 invalid_api_version', '', '', 'stranger'],
  [`GET ${ACME}/metrics?startTime=x`, FORBIDDEN, '', '', 'stranger'],
  bad(`GET ${ACME}/metrics?startTime=x&groupBy=workspace`, 'endTime,startTime', '', 'member'),
  [`${METRICS}&groupBy=workspace&cursor=x`, '400 invalid_cursor', '', '', 'member'],
  ...[METRICS, TYPES, `${ENUMS}/group-by`].map(
    (request): Row => [`${request} @latest`, '400 invalid_api_version', '', '"latest" is not a version of this API'],
  ),
  ...['2026-04-17', '2026-04-28.preview', '2026-04-16.preview', 'length', '', 'v0', '2026-04-16, 2026-04-16'].map(
    (version): Row => {
      const text = `${JSON.stringify(version)} is not a version of this API; the versions are 2026-04-16, 2026-04-28.`;
      return [`GET /v0/accounts @${version}`, '400 invalid_api_version', '', text];
    },
  ),
];

let api: TestApi;
let keys: Readonly<Record<Caller, string | undefined>>;
beforeAll(async () => {
  api = await startApi();
  keys = {
    admin: await api.key('acme'),
    member: await api.key('acme', 'member'),
    emitter: await api.key('acme', 'emitter'),
    operator: await api.key(undefined, 'operator'),
    stranger: await api.key('globex'),
    nobody: undefined,
    'somebody unknown': 'x',
  };
});
afterAll(() => api.stop());

const ROWS = [...PARAMETERS, ...BODIES, ...NOT_THERE, ...ACCESS];

it.each(ROWS.map((row) => [row[4] ?? 'admin', row[0].slice(0, 150), row[1], row[3], row] as const))(
  'the %s who sends %s gets %s: %s',
  async (caller, _request, outcome, text, [request, , at, , , body]) => {
    const [sent = '', version] = request.split(' @');
    const [method = '', ...path] = sent.split(' ');
    const response = await api.request(path.join(' '), {
      method,
      headers: {
        ...(keys[caller] !== undefined && { authorization: `Bearer ${keys[caller]}` }),
        ...(version !== undefined && { 'svc-version': version }),
      },
      ...(body !== undefined && method !== 'GET' && { body }),
    });
    const { error, message, details = [] } = errorOf(response);
    expect(`${response.status} ${error}`).toBe(outcome);
    if (outcome === PARAMETER || outcome === BODY) {
      expect([...new Set(details.map(({ parameter }) => parameter))].sort().join()).toBe(at);
      for (const detail of details) expect(message).toContain(detail.message);
    }
    expect([message, ...details.map((detail) => detail.message)].join(' ')).toContain(text);
  },
);

const PATHS = {
  metrics: metricsPath('acme', DAY),
  groupBy: `${ACME}/metrics/enums/group-by`,
  prices: `${ACME}/metrics/enums/billing-dimensions`,
  types: `${ACME}/metrics/enums/resource-types?${day}`,
};

/** The status, and the code of an error. A 503 says when to try again and names no server. */
function outcomeOf(response: TestResponse): string {
  if (response.status < 400) return String(response.status);
  if (response.status === 503) expect(response.headers.get('retry-after')).toBe('5');
  expect(response.text).not.toMatch(/ECONNREFUSED|127\.0\.0\.1/);
  return `${response.status} ${errorOf(response).error}`;
}

describe('while ClickHouse is away', () => {
  let own: TestApi;
  let key: string;
  let operator: string;
  beforeAll(async () => {
    own = await startApi({}, 'away');
    key = await own.key('acme');
    operator = await own.key(undefined, 'operator');
  });
  afterAll(() => own.stop());

  it.each([
    [PATHS.metrics, '503 storage_unavailable'],
    [PATHS.types, '503 storage_unavailable'],
    [PATHS.prices, '503 storage_unavailable'],
    // Routes that do not need ClickHouse respond, and errors of the caller come first.
    ['/v0/accounts', '200'],
    [PATHS.groupBy, '200'],
    ['/healthz', '200'],
    [metricsPath('acme', {}), '400 invalid_parameter'],
  ])('while ClickHouse is away, %s is %s', async (path, outcome) => {
    expect(outcomeOf(await own.request(path, bearer(key)))).toBe(outcome);
  });

  it('while ClickHouse is away, an operator gets the registered accounts', async () => {
    const { body } = await own.request('/v0/accounts', bearer(operator));
    expect(body).toMatchObject([{ id: 'acme' }]);
  });

  it('while ClickHouse is away, the log has the cause, and /readyz names it', async () => {
    own.log.length = 0;
    await own.request(PATHS.metrics, bearer(key));
    expect(own.log).toMatchObject([{ event: 'request_failed', status: 503, account: 'acme' }]);
    expect(JSON.stringify(own.log)).toContain('ECONNREFUSED');
    const { code, error, message } = errorOf(await own.request('/readyz'));
    expect([code, error, message]).toEqual([503, 'not_ready', 'ClickHouse does not respond.']);
  });
});

const FIT = { problem: undefined, isUsable: true, isFull: false };

describe('while Redis is away', () => {
  let own: TestApi;
  const redis = createRedisClient('redis://127.0.0.1:1', REDIS_POLICIES.request);
  /** Makes the bearer of any token an admin of acme. */
  const tokens: TokenVerifier = {
    verify: async (id) => ({
      id,
      scopes: new Set(['admin', 'apiKey:list']),
      roles: new Map([['acme', 'admin']]),
      platformRoles: new Set(),
    }),
  };
  const KEY = `mlk_${'0'.repeat(24)}_${'0'.repeat(64)}`;
  const AWAY = '503 auth_unavailable';

  beforeAll(async () => {
    redis.on('error', () => undefined);
    await expect(redis.connect()).rejects.toThrow();
    const store = new ApiKeyStore(redis);
    const { warehouse } = api.dependencies;
    const { accounts } = store;
    own = await startApi({ warehouse, accounts, keys: store, tokens, redisStatus: () => readRedisStatus(redis) });
  });
  afterAll(async () => {
    redis.disconnect();
    await own.stop();
  });

  it.each([
    ...['/v0/accounts', PATHS.metrics, PATHS.types].map((path) => [path, 'an API key', KEY, AWAY] as const),
    ...[PATHS.metrics, PATHS.groupBy, PATHS.types].map((path) => [path, 'a token', 'token', '200'] as const),
    // The accounts and the keys are in Redis.
    ...['/v0/accounts', KEYS].map((path) => [path, 'a token', 'token', AWAY] as const),
    ['/v0/accounts', 'nothing', undefined, '401 unauthorized'],
    ['/healthz', 'nothing', undefined, '200'],
  ] as const)('while Redis is away, %s with %s is %s', async (path, _what, credential, outcome) => {
    expect(outcomeOf(await own.request(path, credential === undefined ? {} : bearer(credential)))).toBe(outcome);
  });

  it('while Redis is away, /readyz is 200 and names it where there are tokens, and 503 where keys are the only credentials', async () => {
    const { status, body } = await own.request('/readyz');
    const degraded = [
      { server: 'Redis', message: expect.stringMatching(/^does not respond: .*with an API key get 503/) },
    ];
    expect([status, body]).toEqual([200, { status: 'ready', degraded }]);
    await serving({ redisStatus: () => readRedisStatus(redis) }, async (keysAlone) =>
      expect(errorOf(await keysAlone.request('/readyz')).message).toBe('Redis does not respond.'),
    );
  });

  it.each([
    ['cannot be relied on', 'Redis may evict API keys.', async () => ({ ...FIT, problem: 'may evict API keys' })],
    [
      'returns an error',
      'Redis returned an error: WRONGPASS invalid username-password pair or user is disabled.',
      async () => {
        const refused = new Redis(testRedisUrl(), { lazyConnect: true });
        await refused.auth('nobody', 'wrong').finally(() => refused.disconnect());
        return FIT;
      },
    ],
  ])(
    'a Redis that answers and %s makes /readyz 503 also where there are tokens',
    async (_what, message, redisStatus) => {
      await serving({ tokens, redisStatus }, async (unfit) =>
        expect(errorOf(await unfit.request('/readyz')).message).toBe(message),
      );
    },
  );
});

async function serving(replace: Partial<QueryDependencies>, work: (own: TestApi) => Promise<void>): Promise<void> {
  const own = await startApi({ warehouse: api.dependencies.warehouse, ...replace });
  await work(own).finally(() => own.stop());
}

it('a bug is 500 without internal details, and is logged with its cause', async () => {
  const clock = () => {
    throw new Error('the clock is broken in a secret way');
  };
  await serving({ clock }, async (own) => {
    const { key, keyId } = await own.keys.create({ account: 'acme', role: 'admin', clientId: 'c' }, new Date());
    const path = `/v0/service_accounts/c/api_keys/${keyId}`;
    const response = await own.request(path, { method: 'DELETE', ...bearer(key) });
    expect(outcomeOf(response)).toBe('500 internal_error');
    expect(response.text).not.toContain('clock');
    expect(JSON.stringify(own.log)).toContain('the clock is broken in a secret way');
  });
});

it.each([
  [
    'is too old',
    '26.6.9.1',
    /^ClickHouse cannot be used: its version is 26\.6\.9\.1; Meterline needs ClickHouse 26\.7 or newer/,
  ],
  ['returns an error', undefined, /^ClickHouse returned error 516: see the log\.$/],
])('/readyz names the reason why a ClickHouse that %s cannot be used', async (_what, version, message) => {
  const old = createServer((_request, response) => response.end(JSON.stringify([{ version, settings: [] }])));
  const url = version === undefined ? testClickHouseUrl() : await listening(old);
  const server = { url, user: 'nobody', password: '', database: 'default' };
  const warehouse = createWarehouse({ ...server, application: 'test' });
  await serving({ warehouse }, async (unfit) =>
    expect(errorOf(await unfit.request('/readyz')).message).toMatch(message),
  ).finally(() => Promise.all([warehouse.close(), old.close()]));
});

const FULL = 'is full: API keys cannot be created or revoked, and producers cannot add events';

it.each([
  ['both servers respond', false, undefined],
  ['Redis is full, and names what that prevents', true, FULL],
])('/readyz is 200 while %s', async (_what, isFull, message) => {
  await serving({ redisStatus: async () => ({ ...FIT, isFull }) }, async (own) => {
    const { status, body } = await own.request('/readyz');
    const degraded = message === undefined ? {} : { degraded: [{ server: 'Redis', message }] };
    expect([status, body]).toEqual([200, { status: 'ready', ...degraded }]);
  });
});
