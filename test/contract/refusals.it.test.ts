/**
 * What the API refuses, with which status, code and text. Each response is compared with the OpenAPI document as well; who may do what is in
 * the authorisation matrix, and what no HTTP client would send in http.it.test.ts.
 */
import { afterAll, beforeAll, expect, it } from '@jest/globals';
import { ALERT_SETTINGS } from '../harness/alerts.js';
import { DAY, errorOf, startApi, type TestApi } from '../harness/api.js';

type Caller = 'admin' | 'member' | 'emitter' | 'operator' | 'stranger' | 'nobody' | 'somebody unknown';
/**
 * `at`: the parameters or members that the details name, in the order of the alphabet. `text`: a part of the message and of the details.
 * A request ends with its version, if it is not the first one.
 */
type Refusal = readonly [request: string, outcome: string, at: string, text: string, caller?: Caller, body?: string];

const ACME = '/v0/accounts/acme';
const day = String(new URLSearchParams(DAY));
const METRICS = `GET ${ACME}/metrics?${day}`;
const TYPES = `GET ${ACME}/metrics/enums/resource-types?${day}`;
const ENUMS = `GET ${ACME}/metrics/enums`;
const KEYS = '/v0/service_accounts/robot/api_keys';
const RECENT = ' @2026-04-28';
const [PARAMETER, BODY, FORBIDDEN] = ['400 invalid_parameter', '400 invalid_body', '403 forbidden'];
const METRICS_PARAMETERS =
  'startTime, endTime, resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, withoutResourceUuid, ' +
  'excludeWorkspace, excludeResourceType, excludeResourceName, excludeResourceUuid, excludeBillingDimension, excludeWithoutResourceUuid, limit, cursor.';
const TYPES_PARAMETERS = METRICS_PARAMETERS.replace('resolution, groupBy, ', '').replace(', limit, cursor', '');
const INJECTED = "x' OR 1=1 --";

/** With `invalid_parameter`. */
const bad = (request: string, at: string, text = at): Refusal => [request, PARAMETER, at, text];
/** Many of the metrics, which differ in a parameter: it is added to the day. */
const metrics = (at: string, text: string, ...queries: string[]) =>
  queries.map((query) => bad(`${METRICS}&${query}`, at, text));
const encoded = (name: string, ...values: string[]) => values.map((value) => `${name}=${encodeURIComponent(value)}`);
/** Many that are refused because of the parameter that their query begins with. */
const byFirst = (request: (query: string) => string, ...queries: string[]) =>
  queries.map((query) => bad(request(query), query.split('=')[0] ?? ''));
const names = (count: number) => Array.from({ length: count }, (_, n) => `resourceName=box-${n}`).join('&');
const window = (startTime: string, endTime: string, more = '') =>
  `GET ${ACME}/metrics?${new URLSearchParams({ startTime, endTime })}${more}`;
/** By an admin, with `invalid_body`. */
const badBody = (request: string, body: unknown, at: string, text: string): Refusal => {
  return [request, BODY, at, text, 'admin', typeof body === 'string' ? body : JSON.stringify(body)];
};
const create = (body: unknown, at: string, text: string) => badBody(`POST ${KEYS}`, body, at, text);

const EMPTY: readonly Refusal[] = [
  ...['startTime', 'endTime'].map((name) => {
    const query = new URLSearchParams({ ...DAY, [name]: '' });
    return bad(`GET ${ACME}/metrics?${query}`, name, `${name} is empty; it is required, give it a value.`);
  }),
  ...['resolution', 'groupBy', 'workspace', 'resourceType', 'resourceName', 'resourceUuid', 'withoutResourceUuid']
    .concat('billingDimension', 'limit')
    .flatMap((name) => metrics(name, `${name} is empty; give it a value or leave it out.`, `${name}=`)),
  // Beside another value, too.
  ...['workspace', 'groupBy', 'resourceUuid'].flatMap((name) =>
    metrics(name, `${name} is empty`, `${name}=workspace&${name}=`),
  ),
];

const UNKNOWN: readonly Refusal[] = [
  ...metrics('group_by', `"group_by" is not a parameter; the parameters are ${METRICS_PARAMETERS}`, 'group_by=x'),
  ...metrics('from,label,to', '"from" is not a parameter; the parameters are startTime', 'label=a&from=1&to=2'),
  ...metrics('from,label,to', '"to" is not a parameter.', 'label=a&from=1&to=2'),
  ...['startTime ', 'STARTTIME', 'toString', '__proto__', 'constructor'].flatMap((name) =>
    metrics(name, 'is not a parameter', `${encodeURIComponent(name)}=1`),
  ),
  ...['label', 'unit'].flatMap((name) => metrics(name, `${name} is not supported;`, `${name}=x`)),
  bad(`${ENUMS}/group-by?startTime=x`, 'startTime', '"startTime" is not a parameter; this operation takes none.'),
  bad(`${ENUMS}/billing-dimensions?unit=gbs`, 'unit', 'this operation takes none.'),
  bad(`${TYPES}&limit=5`, 'limit', `"limit" is not a parameter; the parameters are ${TYPES_PARAMETERS}`),
  ...byFirst((query) => `GET /v0/accounts?${query}`, 'limit=1', 'cursor=1', 'sort=1', 'x=1'),
  bad('GET /v0/accounts?limit=5', 'limit', 'Svc-Version: 2026-04-28, the first version with pages and an order.'),
  bad(`GET ${KEYS}?limit=2`, 'limit', 'Svc-Version: 2026-04-28'),
  bad(`DELETE ${KEYS}/${'0'.repeat(24)}?force=1`, 'force'),
  [`POST ${KEYS}?force=1`, PARAMETER, 'force', 'force', 'admin', '{"role":"member"}'],
];

const VALUES: readonly Refusal[] = [
  ...metrics('resolution', 'resolution must be', ...encoded('resolution', 'Hourly', 'yearly')),
  ...metrics('resourceType', 'resourceType must be', ...encoded('resourceType', 'sandboxes', 'Sandbox', INJECTED)),
  ...metrics('excludeResourceType', 'excludeResourceType must be', ...encoded('excludeResourceType', INJECTED)),
  ...metrics('billingDimension', 'billingDimension must be', ...encoded('billingDimension', 'compute', 'toString')),
  ...metrics('limit', 'limit must be', ...encoded('limit', '0', '00', '-1', '1.5', '1e1', ' 1', '0x10', '١', INJECTED)),
  ...metrics('workspace', 'workspace must be', ...encoded('workspace', 'a\nb', 'w'.repeat(257))),
  ...metrics('resourceName', 'resourceName must be', ...encoded('resourceName', '\u0000')),
  ...metrics('resourceUuid', 'resourceUuid must be', ...encoded('resourceUuid', 'u'.repeat(257))),
  ...metrics('withoutResourceUuid', 'withoutResourceUuid must be', ...encoded('withoutResourceUuid', '1', 'TRUE')),
  ...['resolution=daily', 'limit=1', 'cursor=', 'withoutResourceUuid=true'].flatMap((once) =>
    metrics(once.split('=')[0] ?? '', 'give it once', `${once}&${once}`),
  ),
  ...metrics('startTime', 'give it once', `startTime=${DAY.startTime}`),
  ...['%', '%zz', '%ff', '%ed%a0%80', '%c0%af'].map(
    (wrong): Refusal => [`${METRICS}&workspace=${wrong}`, '400 malformed_url', '', ''],
  ),
  ...byFirst((query) => `${TYPES}&${query}`, 'resourceUuid=', 'resourceType=vm', 'withoutResourceUuid=yes'),
  ...byFirst((query) => `${TYPES}&${query}`, 'excludeResourceType=vm', 'excludeResourceName='),
  ...[names(101), names(101).replaceAll('resourceName', 'excludeResourceName')]
    .concat(
      ['workspace=main', 'withoutResourceUuid=true', 'excludeResourceName=box', 'excludeWithoutResourceUuid=true'].map(
        (one) => `${one}&${names(100)}`,
      ),
    )
    .map((query) => bad(`${METRICS}&${query}`, '', 'at most 100 values')),
  bad(
    `GET ${ACME}/metrics?startTime=x&resolution=yearly&limit=0&unit=gbs`,
    'endTime,limit,resolution,startTime,unit',
    'endTime is missing; it is required.',
  ),
  bad(`GET ${ACME}/metrics/enums/resource-types`, 'endTime,startTime', 'startTime is missing; it is required.'),
  bad(
    `GET ${ACME}/events?${day}&groupBy=workspace&includeVoided=yes&limit=0`,
    'groupBy,includeVoided,limit',
    'includeVoided',
  ),
  ...byFirst(
    (query) => `GET /v0/metrics?${day}&${query}`,
    ...['groupBy=account,workspace,resource_type,resource_name', 'groupBy=x', 'account=', 'accountId=acme'],
  ),
  ...byFirst(
    (query) => `GET /v0/accounts?${query}${RECENT}`,
    ...['limit=0', 'limit=x', 'sort=createdAt', 'sort=', 'page=2', 'limit=1&limit=1'],
  ),
  ...byFirst(
    (query) => `GET ${KEYS}?${query}${RECENT}`,
    ...['limit=0', 'sort=name:asc', 'sort=', 'page=2', 'limit=1&limit=1'],
  ),
  [`GET /v0/accounts?cursor=nonsense${RECENT}`, '400 invalid_cursor', '', ''],
];

const GROUP_BY: readonly Refusal[] = [
  ...metrics(
    'groupBy',
    'must list dimensions out of workspace, resource_type, resource_name, resource_uuid, billing_dimension',
    ...encoded(
      'groupBy',
      'colour',
      'resourceType',
      'workspace, resource_type',
      'workspace,',
      ',',
      'toString',
      'account',
    ),
  ),
  ...metrics('account', '"account" is not a parameter', 'account=acme'),
  ...metrics(
    'groupBy',
    'must name each dimension once',
    ...encoded('groupBy', 'workspace,workspace', 'resource_type,workspace,resource_type'),
  ),
  ...metrics('groupBy', 'at most 3 dimensions', 'groupBy=workspace,resource_type,resource_name,resource_uuid'),
];

const WINDOWS: readonly Refusal[] = [
  ...(
    [
      ['hourly', '2025-10-01T12:00:00Z', '2025-10-08T12:00:00.001Z', '7 days'],
      ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00.001Z', '90 days'],
      ['weekly', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00.001Z', '1 year'],
      ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00.001Z', '1 year'],
    ] as const
  ).map(([resolution, startTime, above, cap]) =>
    bad(window(startTime, above, `&resolution=${resolution}`), 'resolution', `at most ${cap}`),
  ),
  bad(
    window('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'),
    '',
    'The window has 119988 monthly buckets, and a response at most 20000; shorten the window.',
  ),
  ...[
    ...['2025-10-01', '2025-10-01T00:00:00', '2025-10-01T02:00:00+02:00', '2025-10-01T00:00:00-00:00'],
    ...['2025-10-01T00:00Z', '2025-02-29T00:00:00Z', '2025-10-01T24:00:00Z', '2025-10-01T00:00:60Z', '1759276800'],
    ...['2025-10-01T00:00:00.Z', '2025-10-01T00:00:00.0123456789Z', '0000-12-31T23:59:59.999Z', 'now'],
    ...['10000-01-01T00:00:00Z', '-0001-01-01T00:00:00Z'],
  ].map((time) => bad(window(time, time), 'endTime,startTime', 'startTime must be RFC 3339 in UTC')),
  bad(
    `GET ${ACME}/metrics?startTime=2025-10-01T00:00:00+00:00&endTime=2025-10-02T00:00:00Z`,
    'startTime',
    'encode the plus as %2B',
  ),
  ...['2025-09-30T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.0009Z'].map((end) =>
    bad(window('2025-10-01T00:00:00.0001Z', end), '', 'endTime must be after startTime'),
  ),
];

const BODIES: readonly Refusal[] = [
  create('', 'body', 'The body must be a JSON object in UTF-8, such as {"role":"member"}.'),
  ...['role=member', '["member"]', 'null'].map((text) => create(text, 'body', 'The body must be a JSON object')),
  create({}, 'role', 'role is missing; it is required.'),
  create({ role: 'owner' }, 'role', 'role must be one of admin, member, emitter (got "owner").'),
  create({ role: 'operator' }, 'role', "emitter; an operator's key is made by the command line alone (got"),
  create({ role: 'member', ttl: 1 }, 'ttl', '"ttl" is not a member; the members are role, account, expiresAt.'),
  create({ role: 'member', expiresAt: '2026-01-01' }, 'expiresAt', 'expiresAt must be RFC 3339 in UTC'),
  create({ role: 'member', expiresAt: null }, 'expiresAt', 'expiresAt '),
  create({ role: 'member', expiresAt: '2025-11-15T12:00:00Z' }, 'expiresAt', 'expiresAt must lie in the future.'),
  create({ role: 'member', account: '' }, 'account', 'account must be 1 to 256 characters'),
  create({ role: 'x', expiresAt: 'x', ttl: 1 }, 'expiresAt,role,ttl', 'role must be one of'),
  [`POST ${KEYS}`, FORBIDDEN, '', 'Access denied', 'admin', '{"role":"admin","account":"globex"}'],
  ...['x'.repeat(257), 'a\u0000b'].map((clientId): Refusal => {
    const path = KEYS.replace('robot', encodeURIComponent(clientId));
    return [`POST ${path}`, PARAMETER, 'clientId', '', 'admin', '{"role":"member"}'];
  }),
  ['POST /v0/accounts/acme/events', '405 method_not_allowed', '', 'sent to the collector', 'nobody', '{}'],
];

const alert = (change: object, at: string, text: string) =>
  badBody(`POST ${ACME}/alerts`, { ...ALERT_SETTINGS, ...change }, at, text);
const alertOf = (filters: object, at: string, text: string) => alert({ filters }, `filters${at}`, text);
const NO_ALERT = `${ACME}/alerts/alr_${'0'.repeat(24)}`;
const THRESHOLDS = 'must be 1 to 10 whole numbers from 1 to 1000, ascending';

const ALERTS: readonly Refusal[] = [
  bad(`GET ${ACME}/alerts?workspace=main`, 'workspace'),
  badBody(`POST ${ACME}/alerts`, {}, 'amount,measure,name,period,url', 'amount is missing'),
  alert({ colour: 'red' }, 'colour', '"colour" is not a member; the members are name, period'),
  alert({ period: 'week', measure: 'money' }, 'measure,period', 'period must be one of day, month (got "week").'),
  ...['0', '0.000', '-1', '1e3', '', 'x', ' 1', '1'.repeat(16), `0.${'1'.repeat(13)}`, 100, null].map((amount) =>
    alert({ amount }, 'amount', 'amount must be a decimal above 0 in a string'),
  ),
  ...[[], [50, 50], [80, 50], Array.from({ length: 11 }, (_, n) => n + 1), 50].map((thresholds) =>
    alert({ thresholds }, 'thresholds', THRESHOLDS),
  ),
  ...[0, 1001, 1.5, '50'].map((percent) => alert({ thresholds: [percent] }, 'thresholds.0', THRESHOLDS)),
  alertOf({ colour: ['red'] }, '', 'no members but workspace, resourceType'),
  alertOf({ resourceType: ['vm'] }, '.resourceType.0', 'filters.resourceType.0 must be one of sandbox'),
  alertOf({ workspace: 'main' }, '.workspace', 'must be an array'),
  alertOf({ workspace: [] }, '.workspace', 'must have a value or be left out'),
  alertOf({ workspace: ['a\u0000'] }, '.workspace.0', 'without control characters'),
  ...[{}, { billingDimension: ['volume_storage_gbs', 'agent_async_requests_count'] }].map((filters) =>
    alert({ measure: 'usage', filters }, 'filters.billingDimension', 'exactly one value where measure is usage'),
  ),
  ...['ftp://example.com', 'https://a:b@example.com', 'example.com', 'https://example.com/\r\nhooks', '']
    .concat(`https://example.com/${'a'.repeat(2_048)}`)
    .map((url) => alert({ url }, 'url', 'url must be an https URL of at most 2048 characters')),
  alert({ url: 'http://example.com/' }, 'url', 'url must begin with https://'),
  ...['localhost', '127.0.0.1', '[::1]', '10.0.0.1', '169.254.169.254', '2130706433', '0x7f.1'].map((host) =>
    alert({ url: `https://${host}/` }, 'url', 'url must not be an address of this machine or of a private network'),
  ),
  ...['GET', 'PATCH', 'DELETE'].map(
    (method): Refusal => [`${method} ${NO_ALERT}`, '404 not_found', '', 'no such alert', 'admin', '{}'],
  ),
  [`GET ${NO_ALERT}?x=1`, '404 not_found', '', 'no such alert'],
  bad(`GET ${ACME}/alerts?limit=5`, 'limit', 'Svc-Version: 2026-04-28'),
  [`POST ${ACME}/alerts?x=1`, PARAMETER, 'x', 'takes none', 'admin', '{}'],
  [`POST ${ACME}/alerts?x=1`, FORBIDDEN, '', 'Only an admin', 'member', '{}'],
];

const NOT_THERE: readonly Refusal[] = [
  ...['/', '/v0', '/v0/accounts/', '/V0/accounts', ACME, `${ACME}/metrics/`, '/v0/nope'].map(
    (path): Refusal => [`GET ${path}`, '404 not_found', '', 'There is no', 'nobody'],
  ),
  ...['/v0/accounts/', `${ACME}/metrics/`, '/docs//'].map((path): Refusal => {
    const meant = path.replace(/\/+$/, '');
    return [`GET ${path}`, '404 not_found', '', `the API's paths do not end with a slash, try ${meant}.`, 'nobody'];
  }),
  ...['unknown', '*', '../api-keys', '\u{1f600}', '0'.repeat(24)].map(
    (id): Refusal => [`DELETE ${KEYS}/${encodeURIComponent(id)}`, '404 not_found', '', ''],
  ),
  [`GET ${KEYS}`, '404 not_found', '', 'no account that you are an admin of has a key of it.'],
];

const forbidden = (caller: Caller, text: string, ...requests: string[]) =>
  requests.map((request): Refusal => [request, FORBIDDEN, '', text, caller]);
const OTHERS = ['acme', 'does-not-exist', 'GLOBEX', 'globex%20', 'a%2Fb', '__proto__', 'constructor'];
const NO_ACCOUNT = 'Access denied There is no such account, or your key or token is not one of it.';
const ofAll = (...queries: string[]) => queries.map((query) => `GET /v0/metrics?${day}&${query}`);

const ACCESS: readonly Refusal[] = [
  // What does not exist looks as what is somebody else's.
  ...['metrics', 'metrics/enums/group-by', 'metrics/enums/resource-types', 'metrics/enums/billing-dimensions', 'events']
    .flatMap((path) => OTHERS.map((account) => `GET /v0/accounts/${account}/${path}?${day}`))
    .flatMap((request) => forbidden('stranger', NO_ACCOUNT, request)),
  ...forbidden(
    'member',
    'Access denied Only an admin of the account may do this',
    ...['workspace=main', 'workspace=unknown', 'excludeWorkspace=main', 'groupBy=workspace']
      .concat('groupBy=resource_type,workspace', 'groupBy=billing_dimension,resource_name,workspace')
      .map((query) => `${METRICS}&${query}`),
    ...[`${TYPES}&workspace=main`, `${TYPES}&excludeWorkspace=main`, `GET ${ACME}/events?${day}`],
    ...ofAll('groupBy=workspace', 'groupBy=account,workspace', 'workspace=main', 'account=acme&excludeWorkspace=main'),
  ),
  // An emitter may send events, and is told so.
  ...forbidden('emitter', 'role emitter', 'GET /v0/accounts', METRICS, `${ENUMS}/group-by`, `GET ${KEYS}`),
  // An operator reads every account and changes nothing, and is told so.
  ...forbidden('operator', 'role operator', `GET ${KEYS}`, `POST ${KEYS}`, `DELETE ${KEYS}/${'0'.repeat(24)}`),
  // Accounts that are not the caller's, there or not.
  ...forbidden(
    'admin',
    'Access denied There is no such account',
    ...ofAll('account=globex', 'account=nobody', 'excludeAccount=globex', 'account=acme&account=globex'),
    ...ofAll(...encoded('account', 'ACME', INJECTED)),
  ),
  // In this order: credentials, version, account, parameters, the role of an admin.
  [`GET ${ACME}/metrics?startTime=x @1999-01-01`, '401 unauthorized', '', '', 'somebody unknown'],
  [`GET ${ACME}/metrics?startTime=x @1999-01-01`, '400 invalid_api_version', '', '', 'stranger'],
  [`GET ${ACME}/metrics?startTime=x`, FORBIDDEN, '', '', 'stranger'],
  [`GET ${ACME}/metrics?startTime=x&groupBy=workspace`, PARAMETER, 'endTime,startTime', '', 'member'],
  [`${METRICS}&groupBy=workspace&cursor=x`, '400 invalid_cursor', '', '', 'member'],
  ...[
    '2026-04-17',
    '2026-04-28.preview',
    '2026-04-16.preview',
    'latest',
    'length',
    '',
    'v0',
    '2026-04-16, 2026-04-16',
  ].flatMap((version) =>
    ['GET /v0/accounts', METRICS, `${ENUMS}/group-by`, TYPES].map((request): Refusal => {
      const text = `${JSON.stringify(version)} is not a version of this API; the valid ones are 2026-04-16, 2026-04-28.`;
      return [`${request} @${version}`, '400 invalid_api_version', '', text];
    }),
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
    operator: await api.key('platform', 'operator'),
    stranger: await api.key('globex'),
    nobody: undefined,
    'somebody unknown': 'x',
  };
});
afterAll(() => api.stop());

const ALL = [...EMPTY, ...UNKNOWN, ...VALUES, ...GROUP_BY, ...WINDOWS, ...BODIES, ...ALERTS, ...NOT_THERE, ...ACCESS];

it.each(ALL.map((row) => [row[4] ?? 'admin', row[0].slice(0, 150), row] as const))(
  'the %s is refused %s',
  async (caller, _request, [request, outcome, at, text, , body]) => {
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
    const named = [...new Set(details.map(({ parameter }) => parameter))].sort();
    if (outcome === PARAMETER || outcome === BODY) {
      if (at !== '') expect(named.join()).toBe(at);
      for (const detail of details) expect(message).toContain(detail.message);
    }
    expect([message, ...details.map((detail) => detail.message)].join(' ')).toContain(text);
  },
);
