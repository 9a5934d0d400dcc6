/**
 * The authorisation matrix: every operation for every kind of caller, with the status and the error code. The test fails for an operation of
 * the OpenAPI document that the matrix lacks. Also what the API reads in tokens, and where clients learn how to get one; the forms of claims
 * are unit tests of packages/api/src/auth. Source: docs/api-contract.md, "Credentials" and "Roles".
 */
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { createTokenVerifier } from '@meterline/api';
import { createOpenApiDocument, type QueryDependencies, readEnv } from '@meterline/query';
import { type Alert, type Delivery, periodAt, webhookPayload } from '@meterline/service/alerts';
import { pino } from 'pino';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { bearer, DAY, errorOf, NOW, startApi, type TestApi } from '../harness/api.js';
import { event } from '../harness/events.js';
import { type CallerKind, callersOf, ISSUER, startTokenIssuer, type TokenIssuer } from './callers.js';
import { sendBytes } from './raw-http.js';

let api: TestApi;
let issuer: TokenIssuer;
let alert: Alert;
let ofWorkspace: Alert;
let delivery: Delivery;

const callers = callersOf(() => ({ keys: api.keys, issuer, now: NOW }));

beforeAll(async () => {
  issuer = await startTokenIssuer(NOW);
  api = await startApi({ protectedResource: { issuer: ISSUER, publicUrl: undefined }, tokens: issuer.verifier });
  await api.key('acme', 'member', 'automaton');
  const { alerts } = api.dependencies;
  alert = await alerts.create('acme', ALERT_SETTINGS, NOW);
  ofWorkspace = await alerts.create('acme', { ...ALERT_SETTINGS, filters: { workspace: ['main'] } }, NOW);
  const payload = webhookPayload(alert, 'alert.test', periodAt('month', NOW.getTime()), NOW.getTime());
  delivery = await alerts.deliveries.addTest(alert, NOW, payload);
  await api.dependencies.views.save('acme', 'types', 'group=resource_type', NOW);
  await api.dependencies.views.save('acme', 'workspaces', 'group=workspace', NOW);
  await api.seed([event({ workspace: 'main' }), event({ accountId: 'globex' })]);
});
afterAll(async () => {
  await api.stop();
  await issuer.close();
});

interface Operation {
  readonly name: string;
  readonly method: string;
  /** As in the OpenAPI document. */
  readonly path: string;
  /** Path and query of the request. */
  readonly target: () => string | Promise<string>;
  readonly body?: string;
}

const METRICS = '/v0/accounts/{accountId}/metrics';
const KEYS = '/v0/service_accounts/{clientId}/api_keys';
const ALERTS = '/v0/accounts/{accountId}/alerts';
const VIEWS = '/v0/accounts/{accountId}/views';
const NEW_VIEW = '{"query":"period=month"}';
const DELIVERIES = `${ALERTS}/{alertId}/deliveries`;
const day = String(new URLSearchParams(DAY));
const NEW_ALERT = JSON.stringify(ALERT_SETTINGS);
const keyPath = (clientId: string, key: string) => `${KEYS}/${key.split('_')[1]}`.replace('{clientId}', clientId);

/**
 * @param operation the method and the path in the document
 * @param target the query of the path, or a function that returns an id or a path once they exist
 */
function op(
  name: string,
  operation: string,
  target: string | (() => string | Promise<string>) = '',
  body?: string,
): Operation {
  const [method = '', path = ''] = operation.split(' ');
  const filled = (id: string) =>
    path
      .replace('{accountId}', 'acme')
      .replace(/\{(alertId|name)\}/, id)
      .replace('{deliveryId}', delivery.id);
  const to = async () => {
    if (typeof target === 'string') return `${filled(alert.id)}${target}`;
    const made = await target();
    return made.startsWith('/') ? made : filled(made);
  };
  return { name, method, path, target: to, ...(body !== undefined && { body }) };
}

/** The operations of the matrix, all about the account acme. */
const OPERATIONS: readonly Operation[] = [
  op('metrics', `GET ${METRICS}`, `?${day}`),
  op('by workspace', `GET ${METRICS}`, `?${day}&groupBy=workspace`),
  op('of a workspace', `GET ${METRICS}`, `?${day}&workspace=main`),
  op('dimensions', `GET ${METRICS}/enums/group-by`),
  op('resource types', `GET ${METRICS}/enums/resource-types`, `?${day}`),
  op('resource types of a workspace', `GET ${METRICS}/enums/resource-types`, `?${day}&workspace=main`),
  op('billing dimensions', `GET ${METRICS}/enums/billing-dimensions`),
  op('accounts', 'GET /v0/accounts'),
  op("another's key", `DELETE ${KEYS}/{apiKeyId}`, async () =>
    keyPath('robot', await api.key('acme', 'member', 'robot')),
  ),
  op('no key', `DELETE ${KEYS}/{apiKeyId}`, () => keyPath('robot', `mlk_${'0'.repeat(24)}_`)),
  op('keys', `GET ${KEYS}`, () => KEYS.replace('{clientId}', 'automaton')),
  op('a new key', `POST ${KEYS}`, () => KEYS.replace('{clientId}', 'new'), '{"role":"member","account":"acme"}'),
  op('events', 'GET /v0/accounts/{accountId}/events', `?${day}`),
  op('metrics of all accounts', 'GET /v0/metrics', `?${day}`),
  op('metrics of one of all accounts', 'GET /v0/metrics', `?${day}&account=acme`),
  op('a named account', 'PUT /v0/accounts/{accountId}', '', '{"name":"acme"}'),
  op('the keys of an account', 'GET /v0/accounts/{accountId}/api_keys'),
  op('alerts', `GET ${ALERTS}`),
  op('a new alert', `POST ${ALERTS}`, '', NEW_ALERT),
  op('an alert', `GET ${ALERTS}/{alertId}`),
  op('an alert of a workspace', `GET ${ALERTS}/{alertId}`, () => ofWorkspace.id),
  op('a changed alert', `PATCH ${ALERTS}/{alertId}`, '', '{"name":"Spend"}'),
  op('a deleted alert', `DELETE ${ALERTS}/{alertId}`, async () => {
    return (await api.dependencies.alerts.create('acme', ALERT_SETTINGS, NOW)).id;
  }),
  op('a test of an alert', `POST ${ALERTS}/{alertId}/test`),
  op('deliveries', `GET ${DELIVERIES}`),
  op('a delivery again', `POST ${DELIVERIES}/{deliveryId}/redeliver`),
  op('views', `GET ${VIEWS}`),
  op('a view', `GET ${VIEWS}/{name}`, () => 'types'),
  op('a view of workspaces', `GET ${VIEWS}/{name}`, () => 'workspaces'),
  op('a saved view', `PUT ${VIEWS}/{name}`, () => 'month', NEW_VIEW),
  op('a deleted view', `DELETE ${VIEWS}/{name}`, async () => {
    return (await api.dependencies.views.save('acme', `old ${Math.random()}`, '', NOW)).name;
  }),
  op('where tokens come from', 'GET /.well-known/oauth-protected-resource'),
  op('health', 'GET /healthz'),
  op('readiness', 'GET /readyz'),
];

/** The outcome of each operation, in the order above. The last three need no credentials. */
type Outcomes = readonly string[];

const OPEN = ['200', '200', '200'];
/** The indexes of the first and the last operation on the keys of a service account. */
const [LIST, CREATE] = [10, 11];
/** The indexes of the operations that only provisioners may do, and that list the keys of an account. */
const [NAME, LIST_OF_ACCOUNT] = [15, 16];
const FIRST_OF_ALERTS = 17;
const all = (outcome: string): Outcomes => [...Array(31).fill(outcome), ...OPEN];
/** @param ofAlerts the outcomes of the operations on alerts and views, which come before the open ones */
const of = (text: string, ofAlerts: Outcomes): Outcomes => [...text.split(' | '), ...ofAlerts, ...OPEN];
const ALERTS_OF_ADMIN = [
  '200',
  '201',
  '200',
  '200',
  '200',
  '204',
  '202',
  '200',
  '202',
  '200',
  '200',
  '200',
  '200',
  '204',
];
const NO_ALERTS = ALERTS_OF_ADMIN.map(() => '403 forbidden');
/** The outcomes for callers who may read but not write. */
const ALERTS_OF_OPERATOR = ALERTS_OF_ADMIN.map((outcome, index) =>
  [0, 2, 3, 7, 9, 10, 11].includes(index) ? outcome : '403 forbidden',
);
const ALERTS_OF_MEMBER = ALERTS_OF_OPERATOR.with(3, '404 not_found').with(11, '404 not_found');

const ADMIN = of(
  '200 | 200 | 200 | 200 | 200 | 200 | 200 | 200 | 200 | 404 not_found | 200 | 200 | 200 | 200 | 200 | 403 forbidden | 200',
  ALERTS_OF_ADMIN,
);
const MEMBER = of(
  '200 | 403 forbidden | 403 forbidden | 200 | 200 | 403 forbidden | 200 | 200 | 404 not_found | 404 not_found | 403 forbidden | 403 forbidden | 403 forbidden | 200 | 200 | 403 forbidden | 403 forbidden',
  ALERTS_OF_MEMBER,
);
const STRANGER = of(
  '403 forbidden | 403 forbidden | 403 forbidden | 403 forbidden | 403 forbidden | 403 forbidden | 403 forbidden | 200 | 404 not_found | 404 not_found | 403 forbidden | 403 forbidden | 403 forbidden | 200 | 403 forbidden | 403 forbidden | 403 forbidden',
  NO_ALERTS,
);
/** An admin of another account may list and create keys of that account only. */
const FOREIGN_ADMIN = STRANGER.with(LIST, '404 not_found');
/** An emitter may send events to the collector and reads nothing here. */
const EMITTER = STRANGER.with(7, '403 forbidden').with(13, '403 forbidden');
/** An operator reads like an admin and changes nothing. It does not learn that a key does not exist. */
const OPERATOR = ADMIN.map((outcome, index) => {
  if (index >= FIRST_OF_ALERTS) return ALERTS_OF_OPERATOR[index - FIRST_OF_ALERTS] ?? outcome;
  return index < 8 || (index > CREATE && index !== LIST_OF_ACCOUNT) ? outcome : '403 forbidden';
});
/** A provisioner names accounts and manages their keys, which it lists by account, and reads no usage. */
const PROVISIONER = EMITTER.map((outcome, index) => {
  if (index === 9) return '404 not_found';
  if (index === LIST) return '400 invalid_parameter';
  return [7, 8, CREATE, NAME, LIST_OF_ACCOUNT].includes(index) ? '200' : outcome;
});
const UNSCOPED = all('403 insufficient_scope');
/** The outcomes of a token with only one scope. */
const onlyReading = (outcomes: Outcomes) =>
  outcomes.map((outcome, index) => {
    const isOfKeys = (index >= 8 && index <= CREATE) || index === LIST_OF_ACCOUNT;
    return isOfKeys ? '403 insufficient_scope' : outcome;
  });
const onlyListing = (outcomes: Outcomes) =>
  [LIST, LIST_OF_ACCOUNT].reduce((some, index) => some.with(index, outcomes[index] ?? ''), UNSCOPED);
const onlyWriting = (outcomes: Outcomes) =>
  [8, 9, CREATE].reduce((some, index) => some.with(index, outcomes[index] ?? ''), UNSCOPED);

type Headers = Readonly<Record<string, string>>;

/** The outcomes for each kind of caller. */
const CALLERS: readonly (readonly [kind: CallerKind, outcomes: Outcomes])[] = [
  ...callers.turnedAway.map(([kind, outcome]) => [kind, all(outcome)] as const),
  ['an admin key', ADMIN],
  ['an admin key in X-Svc-Authorization', ADMIN],
  ['an admin key in both headers', ADMIN],
  ['a member key', MEMBER],
  ['a member key in X-Svc-Authorization', MEMBER],
  ['an emitter key', EMITTER],
  ['an operator key', OPERATOR],
  ['a provisioner key', PROVISIONER],
  ['an emitter key of all accounts', EMITTER],
  ['an emitter key of another account', EMITTER],
  ['an admin key of another account', FOREIGN_ADMIN],
  ['a member key of another account', STRANGER],
  ['an admin key of ACME', FOREIGN_ADMIN],
  ['an admin token', ADMIN],
  ['a member token', MEMBER],
  ['an admin token of two accounts', ADMIN],
  ['an admin token of another account', FOREIGN_ADMIN],
  ['an admin token of ACME', FOREIGN_ADMIN],
  ['an operator token', OPERATOR],
  ['a provisioner token', PROVISIONER],
  ['an emitter token of all accounts', EMITTER],
  ['an operator token that is an admin of the account', ADMIN],
  ['a token with roles of the platform in another claim', STRANGER],
  ['a provisioner token without scopes', UNSCOPED],
  ['a token of no account', STRANGER],
  ['a token without accounts', STRANGER],
  ['a token with a role that does not exist', STRANGER],
  ['an admin token without scopes', UNSCOPED],
  ['an admin token with another scope', UNSCOPED],
  ['an admin token with the scope admin', onlyReading(ADMIN)],
  ['a member token with the scope admin', onlyReading(MEMBER)],
  ['a stranger’s token with the scope admin', onlyReading(STRANGER)],
  ['an admin token with the scope apiKey:write', onlyWriting(ADMIN)],
  ['a member token with the scope apiKey:write', onlyWriting(MEMBER)],
  ['an admin token with the scope apiKey:list', onlyListing(ADMIN)],
  ['a member token with the scope apiKey:list', onlyListing(MEMBER)],
];

const CHALLENGE =
  /^Bearer realm="meterline"(, error="invalid_token")?, resource_metadata="http:\/\/127\.0\.0\.1:\d+\/\.well-known\/oauth-protected-resource"$/;

/** Allows cached responses, so that a denied caller would also get a response that was computed for another. */
async function outcome({ method, target, body }: Operation, credentials: Headers): Promise<string> {
  const headers = { ...credentials, 'cache-control': 'max-age=300' };
  const response = await api.request(await target(), { method, headers, ...(body && { body }) });
  if (response.status === 401) expect(response.headers.get('www-authenticate')).toMatch(CHALLENGE);
  return response.status < 300 ? String(response.status) : `${response.status} ${errorOf(response).error}`;
}

it('the matrix has every operation of the OpenAPI document', () => {
  const documented = Object.entries(createOpenApiDocument().paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect([...new Set(OPERATIONS.map(({ method, path }) => `${method} ${path}`))].sort()).toEqual(documented.sort());
});

it('the matrix has 64 kinds of callers and 34 operations, 2,176 cells', () => {
  expect(CALLERS.map(([kind]) => kind).sort()).toEqual(Object.keys(callers.all).sort());
  expect([CALLERS.length, OPERATIONS.length]).toEqual([64, 34]);
  for (const [, outcomes] of CALLERS) expect(outcomes).toHaveLength(OPERATIONS.length);
});

it.each(CALLERS)('each operation responds to %s as the matrix says', async (kind, outcomes) => {
  const sent = await callers.all[kind]();
  const found = await Promise.all(OPERATIONS.map((operation) => outcome(operation, sent)));
  const named = (list: Outcomes) => Object.fromEntries(OPERATIONS.map(({ name }, index) => [name, list[index]]));
  expect(named(found)).toEqual(named(outcomes));
});

describe('a method that an operation does not have', () => {
  const others = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'];
  const served = ({ path }: Operation) =>
    OPERATIONS.flatMap((other) => {
      if (other.path !== path) return [];
      return other.method === 'GET' ? ['GET', 'HEAD'] : [other.method];
    });
  const allowedOf = (operation: Operation) => [...new Set(served(operation))].join(', ');

  it.each(OPERATIONS.map((operation) => [operation.name, operation] as const))(
    'a method that an operation does not have is 405 for %s, with and without credentials, and Allow names the methods',
    async (_name, operation) => {
      const target = await operation.target();
      for (const method of others.filter((other) => !served(operation).includes(other))) {
        for (const headers of [{}, await callers.all['an admin key']()]) {
          const response = await api.request(target, { method, headers });
          expect([method, response.status, response.headers.get('allow')]).toEqual([method, 405, allowedOf(operation)]);
        }
      }
    },
  );
});

/** A verifier with the settings that a service reads from these variables. */
function verifier(variables: Readonly<Record<string, string>> = {}) {
  const { tokens } = readEnv({ CURSOR_SECRET: 'x'.repeat(32), ...issuer.env, ...variables });
  if (!tokens) throw new Error('no tokens');
  return createTokenVerifier({ ...tokens, clock: () => NOW, log: pino({ level: 'silent' }) });
}

async function serving(replace: Partial<QueryDependencies>, work: (own: TestApi) => Promise<void>): Promise<void> {
  const own = await startApi(replace, 'away');
  await work(own).finally(() => own.stop());
}

describe('tokens', () => {
  it('the variables of the service name the claims with accounts and names, and the roles of admins', async () => {
    const variables = {
      AUTH_ACCOUNTS_CLAIM: 'app.orgs',
      AUTH_ACCOUNT_NAMES_CLAIM: 'names',
      AUTH_ADMIN_ROLES: 'admin, owner',
    };
    await serving({ tokens: verifier(variables) }, async (own) => {
      const claims = { app: { orgs: { acme: 'owner', globex: 'viewer' } }, names: { acme: 'ACME Corp.' } };
      const { body } = await own.request('/v0/accounts', bearer(await issuer.sign(claims)));
      expect(body).toEqual([
        { id: 'acme', role: 'admin', name: 'ACME Corp.' },
        { id: 'globex', role: 'member', name: 'globex' },
      ]);
    });
  });

  it('the registered name of an account is shown where the token gives none', async () => {
    await serving({ tokens: verifier({ AUTH_ACCOUNT_NAMES_CLAIM: 'names' }) }, async (own) => {
      await own.dependencies.accounts.register('initech', NOW, 'Initech, Inc.');
      for (const [names, name] of [
        [{}, 'Initech, Inc.'],
        [{ initech: 'Initech' }, 'Initech'],
        [{}, 'Initech, Inc.'],
      ] as const) {
        const token = await issuer.sign({ accounts: ['initech'], names });
        const { body } = await own.request('/v0/accounts', bearer(token));
        expect(body).toEqual([{ id: 'initech', role: 'member', createdAt: NOW.toISOString(), name }]);
      }
    });
  });

  it('the response names a malformed claim of a token with a valid signature, and of no other token', async () => {
    const messageOf = async (token: string) => errorOf(await api.request('/v0/accounts', bearer(token))).message;
    expect(await messageOf(await issuer.sign({ accounts: null }))).toMatch(
      /^The token's claim accounts must be an object/,
    );
    expect(await messageOf(await issuer.forge({ accounts: null }))).toContain('unknown, revoked or');
  });

  it('a token is 503 when the published keys cannot be read, and an API key still works', async () => {
    await serving({}, async (other) => {
      for (const url of ['http://127.0.0.1:1/jwks.json', `${other.url}/healthz`, `${other.url}/nope`]) {
        await serving({ tokens: verifier({ AUTH_JWKS_URL: url }) }, async (server) => {
          const response = await server.request('/v0/accounts', bearer(await issuer.sign({})));
          expect([url, response.status, errorOf(response).error]).toEqual([url, 503, 'auth_unavailable']);
          expect(response.headers.get('retry-after')).toBe('5');
          expect((await server.request('/v0/accounts', bearer(await server.key('acme')))).status).toBe(200);
        });
      }
    });
  });
});

describe('the metadata of tokens', () => {
  const PATH = '/.well-known/oauth-protected-resource';
  const BILLING = 'https://billing.example.com';
  const servingAt = (publicUrl: string | undefined, work: (server: TestApi) => Promise<void>) =>
    serving({ tokens: issuer.verifier, protectedResource: { issuer: ISSUER, publicUrl }, trustProxy: 1 }, work);

  it('the metadata of tokens is served under the public URL of the API, whatever the host of the request', async () => {
    await servingAt(BILLING, async (server) => {
      const { status, body } = await server.request(PATH);
      expect([status, body]).toEqual([
        200,
        {
          resource: BILLING,
          authorization_servers: [ISSUER],
          scopes_supported: ['admin', 'apiKey:list', 'apiKey:write'],
          bearer_methods_supported: ['header'],
          resource_name: 'Meterline',
          resource_documentation: `${BILLING}/docs`,
        },
      ]);
      for (const [headers, problem] of [
        [{}, ''],
        [bearer('x').headers, ', error="invalid_token"'],
        [bearer(await issuer.sign({ scope: 'jobs:list' })).headers, ', error="insufficient_scope", scope="admin"'],
      ] as const) {
        const challenge = (await server.request('/v0/accounts', { headers })).headers.get('www-authenticate');
        expect(challenge).toBe(`Bearer realm="meterline"${problem}, resource_metadata="${BILLING}${PATH}"`);
      }
    });
  });

  it('the metadata of tokens is served under the URL of the request without a public URL, as the proxy forwards it', async () => {
    await servingAt(undefined, async (server) => {
      expect((await server.request(PATH)).body).toMatchObject({ resource: server.url });
      const headers = { 'x-forwarded-proto': 'https', 'x-forwarded-host': 'billing.example.com' };
      expect((await server.request(PATH, { headers })).body).toMatchObject({ resource: BILLING });
      const refused = await server.request('/v0/accounts', { headers });
      expect(refused.headers.get('www-authenticate')).toContain(`resource_metadata="${BILLING}${PATH}"`);
    });
  });

  it('the metadata of tokens rejects a Host that would inject a parameter into a header', async () => {
    await servingAt(undefined, async (server) => {
      const get = (path: string) =>
        sendBytes(server.url, `GET ${path} HTTP/1.1\r\nHost: a", x="\r\nConnection: close\r\n\r\n`, {
          keepsOpen: true,
        });
      expect((await get(PATH)).status).toBe(400);
      const { status, head } = await get('/v0/accounts');
      expect(status).toBe(401);
      expect(head).toMatch(/^WWW-Authenticate: Bearer realm="meterline"\r$/m);
    });
  });

  it('the metadata of tokens is 404 where tokens are not accepted, and no challenge refers to it', async () => {
    await serving({}, async (server) => {
      const response = await server.request(PATH);
      expect([response.status, errorOf(response).error]).toEqual([404, 'not_found']);
      const { status, headers } = await server.request('/v0/accounts', bearer(await issuer.sign({})));
      expect([status, headers.get('www-authenticate')]).toEqual([
        401,
        'Bearer realm="meterline", error="invalid_token"',
      ]);
    });
  });
});
