/** Which query strings of the metrics and of the enum of resource types are accepted, and how the others are rejected. */
import { expect, it } from '@jest/globals';
import { ApiError } from '@meterline/api/http/errors';
import { ACCOUNTS_METRICS_PARAMETERS } from '@meterline/catalog';
import { parseMetricsRequest, parseResourceTypesRequest, readsWorkspaces } from './request.js';

const DAY = { startTime: '2025-10-01T00:00:00Z', endTime: '2025-10-02T00:00:00Z' };
const WINDOW = String(new URLSearchParams(DAY));

function rejectionOf(parse: () => unknown): ApiError {
  try {
    parse();
  } catch (error) {
    if (error instanceof ApiError) return error;
    throw error;
  }
  throw new Error('the query was accepted');
}

it('parseMetricsRequest fills in the defaults', () => {
  expect(parseMetricsRequest(WINDOW)).toEqual({
    window: { startTime: Date.UTC(2025, 9, 1), endTime: Date.UTC(2025, 9, 2) },
    resolution: 'hourly',
    groupBy: [],
    filters: {},
    excluded: {},
    limit: 100,
    cursor: '',
  });
  const year = 'startTime=2025-10-01T00:00:00Z&endTime=2026-10-01T00:00:00Z';
  expect(parseMetricsRequest(year).resolution).toBe('monthly');
});

it.each([
  [`${WINDOW}&limit=125`, 100],
  // 250 months: 80 groups make 20,000 points.
  ['startTime=2005-01-01T00:00:00Z&endTime=2025-11-01T00:00:00Z', 80],
])('the limit of %s is reduced to %d groups', (query, limit) => {
  expect(parseMetricsRequest(query).limit).toBe(limit);
});

it('parseMetricsRequest returns the canonical form', () => {
  const query =
    `${WINDOW}&groupBy=billing_dimension%2Cresource_type&groupBy=workspace&limit=007&resolution=daily` +
    '&resourceUuid=v&withoutResourceUuid=true&resourceUuid=u&resourceUuid=v&workspace=a+b' +
    '&excludeResourceUuid=x&excludeWithoutResourceUuid=true&excludeResourceUuid=w&excludeResourceUuid=x&excludeWorkspace=c';
  expect(parseMetricsRequest(query)).toMatchObject({
    resolution: 'daily',
    groupBy: ['workspace', 'resource_type', 'billing_dimension'],
    filters: { resource_uuid: ['', 'u', 'v'], workspace: ['a b'] },
    excluded: { resource_uuid: ['', 'w', 'x'], workspace: ['c'] },
    limit: 7,
  });
});

const encoded = (name: string, ...values: string[]) => values.map((value) => `${name}=${encodeURIComponent(value)}`);
const boxes = (count: number, name = 'resourceName') =>
  Array.from({ length: count }, (_, n) => `${name}=box-${n}`).join('&');

it.each([
  ...['limit=1', 'limit=0100', 'limit=101', `limit=${'9'.repeat(400)}`, 'cursor=', 'resolution=monthly'],
  ...['resourceName=%20', `workspace=${encodeURIComponent('\u{1f600}'.repeat(256))}`, 'resourceType=custom_domain'],
  ...[boxes(100), boxes(100, 'excludeResourceName')],
])('parseMetricsRequest accepts %s', (query) => {
  expect(parseMetricsRequest(`${WINDOW}&${query}`)).toBeDefined();
});

it.each([
  ['groupBy=workspace', true],
  ['groupBy=billing_dimension,resource_name,workspace', true],
  ['workspace=main', true],
  ['excludeWorkspace=main', true],
  ['groupBy=billing_dimension,resource_name,resource_type&resourceName=workspace', false],
])('a query with %s reads workspaces: %s', (query, expected) => {
  expect(readsWorkspaces(parseMetricsRequest(`${WINDOW}&${query}`))).toBe(expected);
});

const PARSERS = {
  metrics: parseMetricsRequest,
  'metrics of all accounts': (query: string) => parseMetricsRequest(query, ACCOUNTS_METRICS_PARAMETERS),
  'resource types': parseResourceTypesRequest,
};
/**
 * `at`: the parameters that the details name, in alphabetical order. `text`: a part of the message.
 * The query is added to a window of a day, unless it has a window of its own.
 */
type Row = readonly [parser: keyof typeof PARSERS, query: string, at: string, text: string];

const rowsOf =
  (parser: keyof typeof PARSERS) =>
  (at: string, text: string, ...queries: string[]) =>
    queries.map((query): Row => [parser, query, at, text]);
const metrics = rowsOf('metrics');
const accounts = rowsOf('metrics of all accounts');
const types = rowsOf('resource types');
const nameOf = (query: string) => query.split('=')[0] ?? '';
const window = (startTime: string, endTime: string) => String(new URLSearchParams({ startTime, endTime }));

const METRICS_PARAMETERS =
  'startTime, endTime, resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, withoutResourceUuid, ' +
  'excludeWorkspace, excludeResourceType, excludeResourceName, excludeResourceUuid, excludeBillingDimension, excludeWithoutResourceUuid, limit, cursor.';
const TYPES_PARAMETERS = METRICS_PARAMETERS.replace('resolution, groupBy, ', '').replace(', limit, cursor', '');
const INJECTED = "x' OR 1=1 --";

const NAMES: readonly Row[] = [
  ...metrics('group_by', `"group_by" is not a parameter; the parameters are ${METRICS_PARAMETERS}`, 'group_by=x'),
  ...metrics('from,label,to', '"from" is not a parameter; the parameters are startTime', 'label=a&from=1&to=2'),
  ...metrics('from,label,to', '"to" is not a parameter.', 'label=a&from=1&to=2'),
  ...['startTime ', 'STARTTIME', 'toString', '__proto__', 'constructor', 'account'].flatMap((name) =>
    metrics(name, 'is not a parameter', `${encodeURIComponent(name)}=1`),
  ),
  ...['label', 'unit'].flatMap((name) => metrics(name, `${name} is not supported;`, `${name}=x`)),
  ...accounts('accountId', 'account, excludeAccount', 'accountId=acme'),
  ...types('limit', `"limit" is not a parameter; the parameters are ${TYPES_PARAMETERS}`, 'limit=5'),
];

const NUMBER_OF_VALUES: readonly Row[] = [
  ...metrics('startTime', 'startTime is empty; it is required, give it a value.', window('', DAY.endTime)),
  ...['resolution', 'groupBy', 'workspace', 'resourceType', 'resourceName', 'resourceUuid', 'withoutResourceUuid']
    .concat('billingDimension', 'limit')
    .flatMap((name) => metrics(name, `${name} is empty; give it a value or omit it.`, `${name}=`)),
  ...['workspace', 'groupBy', 'resourceUuid'].flatMap((name) =>
    metrics(name, `${name} is empty`, `${name}=workspace&${name}=`),
  ),
  ...accounts('account', 'account is empty', 'account='),
  ...types('excludeResourceName', 'excludeResourceName is empty', 'excludeResourceName='),
  ...['resolution=daily', 'limit=1', 'cursor=', 'withoutResourceUuid=true'].flatMap((once) =>
    metrics(nameOf(once), 'give it once', `${once}&${once}`),
  ),
  ...metrics('startTime', 'give it once', `${WINDOW}&startTime=${DAY.startTime}`),
  ...[
    ...[boxes(101), boxes(101, 'excludeResourceName'), `workspace=main&${boxes(100)}`],
    ...['excludeResourceName', 'resourceUuid', 'excludeResourceUuid'].map((name) => `${boxes(100)}&${name}=box`),
  ].flatMap((query) =>
    metrics(nameOf(query.split('&').at(-1) ?? ''), 'all filters together may have at most 100 values', query),
  ),
  ...metrics('resourceUuid', 'at most 100 values', `withoutResourceUuid=true&${boxes(100)}`),
  ...metrics('excludeResourceUuid', 'at most 100 values', `excludeWithoutResourceUuid=true&${boxes(100)}`),
  ...types('resourceName', 'at most 100 values', boxes(101)),
];

const VALUES: readonly Row[] = [
  ...encoded('resolution', 'Hourly', 'yearly'),
  ...encoded('resourceType', 'sandboxes', 'Sandbox', INJECTED),
  ...encoded('excludeResourceType', INJECTED),
  ...encoded('billingDimension', 'compute', 'toString'),
  ...encoded('limit', '0', '00', '-1', '1.5', '1e1', ' 1', '0x10', '١', INJECTED),
  ...encoded('workspace', 'a\nb', 'w'.repeat(257)),
  ...encoded('resourceName', '\u0000'),
  ...encoded('resourceUuid', 'u'.repeat(257)),
  ...encoded('withoutResourceUuid', '1', 'TRUE'),
].flatMap((query) => metrics(nameOf(query), `${nameOf(query)} must be`, query));

const GROUP_BY: readonly Row[] = [
  ...metrics(
    'groupBy',
    'must list dimensions from workspace, resource_type, resource_name, resource_uuid, billing_dimension',
    ...encoded('groupBy', 'colour', 'resourceType', 'workspace, resource_type', 'workspace,', ',', 'toString'),
    'groupBy=account',
  ),
  ...metrics('groupBy', 'must name each dimension once', 'groupBy=resource_type,workspace,resource_type'),
  ...metrics('groupBy', 'at most 3 dimensions', 'groupBy=workspace,resource_type,resource_name,resource_uuid'),
  ...accounts('groupBy', 'at most 3 dimensions', 'groupBy=account,workspace,resource_type,resource_name'),
];

/** The catalog has unit tests of all forms of times and of the caps of all resolutions. */
const WINDOWS: readonly Row[] = [
  ...metrics('resolution', 'at most 7 days', `${window(DAY.startTime, '2025-10-08T00:00:00.001Z')}&resolution=hourly`),
  ...metrics(
    'endTime',
    'The window has 119988 monthly buckets, but a response may have at most 20000; shorten the window.',
    window('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'),
  ),
  ...['2025-10-01', '0000-12-31T23:59:59.999Z', '1759276800'].flatMap((time) =>
    metrics('endTime,startTime', 'startTime must be RFC 3339 in UTC', window(time, time)),
  ),
  ...metrics('startTime', 'encode the plus as %2B', `startTime=2025-10-01T00:00:00+00:00&endTime=${DAY.endTime}`),
  ...['2025-09-30T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.0009Z'].flatMap((end) =>
    metrics('endTime', 'endTime must be after startTime', window('2025-10-01T00:00:00.0001Z', end)),
  ),
  ...metrics(
    'endTime,limit,resolution,startTime,unit',
    'endTime is missing; it is required.',
    'startTime=x&resolution=yearly&limit=0&unit=gbs',
  ),
  ...types('endTime,startTime', 'endTime must be RFC 3339 in UTC', 'startTime=x&endTime=x'),
];

const ROWS = [...NAMES, ...NUMBER_OF_VALUES, ...VALUES, ...GROUP_BY, ...WINDOWS];

it.each(ROWS.map((row) => [row[0], row[1].slice(0, 100), row[3], row] as const))(
  'the query of %s is rejected with %s: %s',
  (...[, , , [parser, query, at, text]]) => {
    const hasWindow = /^(startTime|endTime)=/.test(query);
    const {
      status,
      code,
      message,
      details = [],
    } = rejectionOf(() => PARSERS[parser](hasWindow ? query : `${WINDOW}&${query}`));
    expect([status, code]).toEqual([400, 'invalid_parameter']);
    expect([...new Set(details.map(({ parameter }) => parameter))].sort().join()).toBe(at);
    for (const detail of details) expect(message).toContain(detail['message']);
    expect(message).toContain(text);
  },
);

it('a long value is cut where a message quotes it', () => {
  const { message } = rejectionOf(() => parseMetricsRequest(`${WINDOW}&resourceType=${'x'.repeat(5_000)}`));
  expect(message.length).toBeLessThan(300);
});
