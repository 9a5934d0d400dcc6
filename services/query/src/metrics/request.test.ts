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
])('parseMetricsRequest accepts %.60s', (query) => {
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

/**
 * `at`: the parameters that the details name, in alphabetical order. `text`: a part of the message.
 * The query is added to a window of a day, unless it has a window of its own.
 */
type Row = readonly [query: string, at: string, text: string];

const rows = (at: string, text: string, ...queries: string[]) => queries.map((query): Row => [query, at, text]);
const METRICS_PARAMETERS =
  'startTime, endTime, resolution, groupBy, workspace, resourceType, resourceName, resourceUuid, billingDimension, withoutResourceUuid, ' +
  'excludeWorkspace, excludeResourceType, excludeResourceName, excludeResourceUuid, excludeBillingDimension, excludeWithoutResourceUuid, limit, cursor.';
const INJECTED = "x' OR 1=1 --";

const EMPTY: readonly Row[] = [
  ...['startTime', 'endTime'].flatMap((name) =>
    rows(
      name,
      `${name} is empty; it is required, give it a value.`,
      String(new URLSearchParams({ ...DAY, [name]: '' })),
    ),
  ),
  ...['resolution', 'groupBy', 'workspace', 'resourceType', 'resourceName', 'resourceUuid', 'withoutResourceUuid']
    .concat('billingDimension', 'limit')
    .flatMap((name) => rows(name, `${name} is empty; give it a value or leave it out.`, `${name}=`)),
  ...['workspace', 'groupBy', 'resourceUuid'].flatMap((name) =>
    rows(name, `${name} is empty`, `${name}=workspace&${name}=`),
  ),
];

const UNKNOWN: readonly Row[] = [
  ...rows('group_by', `"group_by" is not a parameter; the parameters are ${METRICS_PARAMETERS}`, 'group_by=x'),
  ...rows('from,label,to', '"from" is not a parameter; the parameters are startTime', 'label=a&from=1&to=2'),
  ...rows('from,label,to', '"to" is not a parameter.', 'label=a&from=1&to=2'),
  ...['startTime ', 'STARTTIME', 'toString', '__proto__', 'constructor', 'account'].flatMap((name) =>
    rows(name, 'is not a parameter', `${encodeURIComponent(name)}=1`),
  ),
  ...['label', 'unit'].flatMap((name) => rows(name, `${name} is not supported;`, `${name}=x`)),
];

const VALUES: readonly Row[] = [
  ...rows('resolution', 'resolution must be', ...encoded('resolution', 'Hourly', 'yearly')),
  ...rows('resourceType', 'resourceType must be', ...encoded('resourceType', 'sandboxes', 'Sandbox', INJECTED)),
  ...rows('excludeResourceType', 'excludeResourceType must be', ...encoded('excludeResourceType', INJECTED)),
  ...rows('billingDimension', 'billingDimension must be', ...encoded('billingDimension', 'compute', 'toString')),
  ...rows('limit', 'limit must be', ...encoded('limit', '0', '00', '-1', '1.5', '1e1', ' 1', '0x10', '١', INJECTED)),
  ...rows('workspace', 'workspace must be', ...encoded('workspace', 'a\nb', 'w'.repeat(257))),
  ...rows('resourceName', 'resourceName must be', ...encoded('resourceName', '\u0000')),
  ...rows('resourceUuid', 'resourceUuid must be', ...encoded('resourceUuid', 'u'.repeat(257))),
  ...rows('withoutResourceUuid', 'withoutResourceUuid must be', ...encoded('withoutResourceUuid', '1', 'TRUE')),
  ...['resolution=daily', 'limit=1', 'cursor=', 'withoutResourceUuid=true'].flatMap((once) =>
    rows(once.split('=')[0] ?? '', 'give it once', `${once}&${once}`),
  ),
  ...rows('startTime', 'give it once', `${WINDOW}&startTime=${DAY.startTime}`),
  ...rows(
    'resourceName',
    'all filters together may have at most 100 values',
    ...[boxes(101), `workspace=main&${boxes(100)}`],
  ),
  ...rows('resourceUuid', 'at most 100 values', `withoutResourceUuid=true&${boxes(100)}`),
  ...rows(
    'excludeResourceName',
    'at most 100 values',
    ...[boxes(101, 'excludeResourceName'), `excludeResourceName=box&${boxes(100)}`],
  ),
  ...rows('excludeResourceUuid', 'at most 100 values', `excludeWithoutResourceUuid=true&${boxes(100)}`),
  ...rows(
    'endTime,limit,resolution,startTime,unit',
    'endTime is missing; it is required.',
    'startTime=x&resolution=yearly&limit=0&unit=gbs',
  ),
];

const GROUP_BY: readonly Row[] = [
  ...rows(
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
  ...rows(
    'groupBy',
    'must name each dimension once',
    ...encoded('groupBy', 'workspace,workspace', 'resource_type,workspace,resource_type'),
  ),
  ...rows('groupBy', 'at most 3 dimensions', 'groupBy=workspace,resource_type,resource_name,resource_uuid'),
];

const window = (startTime: string, endTime: string, more = '') =>
  `${new URLSearchParams({ startTime, endTime })}${more}`;

const WINDOWS: readonly Row[] = [
  ...(
    [
      ['hourly', '2025-10-01T12:00:00Z', '2025-10-08T12:00:00.001Z', '7 days'],
      ['daily', '2025-01-01T00:00:00Z', '2025-04-01T00:00:00.001Z', '90 days'],
      ['weekly', '2024-01-01T00:00:00Z', '2025-01-01T00:00:00.001Z', '1 year'],
      ['weekly', '2024-02-29T00:00:00Z', '2025-02-28T00:00:00.001Z', '1 year'],
    ] as const
  ).flatMap(([resolution, startTime, endTime, cap]) =>
    rows('resolution', `at most ${cap}`, window(startTime, endTime, `&resolution=${resolution}`)),
  ),
  ...rows(
    'endTime',
    'The window has 119988 monthly buckets, and a response at most 20000; shorten the window.',
    window('0001-01-01T00:00:00Z', '9999-12-31T23:59:59Z'),
  ),
  ...[
    ...['2025-10-01', '2025-10-01T00:00:00', '2025-10-01T02:00:00+02:00', '2025-10-01T00:00:00-00:00'],
    ...['2025-10-01T00:00Z', '2025-02-29T00:00:00Z', '2025-10-01T24:00:00Z', '2025-10-01T00:00:60Z', '1759276800'],
    ...['2025-10-01T00:00:00.Z', '2025-10-01T00:00:00.0123456789Z', '0000-12-31T23:59:59.999Z', 'now'],
    ...['10000-01-01T00:00:00Z', '-0001-01-01T00:00:00Z'],
  ].flatMap((time) => rows('endTime,startTime', 'startTime must be RFC 3339 in UTC', window(time, time))),
  ...rows('startTime', 'encode the plus as %2B', `startTime=2025-10-01T00:00:00+00:00&endTime=${DAY.endTime}`),
  ...rows(
    'endTime',
    'endTime must be after startTime',
    ...['2025-09-30T00:00:00Z', '2025-10-01T00:00:00Z', '2025-10-01T00:00:00.0009Z'].map((end) =>
      window('2025-10-01T00:00:00.0001Z', end),
    ),
  ),
];

function expectRejected(parse: (query: string) => unknown, [query, at, text]: Row): void {
  const {
    status,
    code,
    message,
    details = [],
  } = rejectionOf(() => parse(/^(startTime|endTime)=/.test(query) ? query : `${WINDOW}&${query}`));
  expect([status, code]).toEqual([400, 'invalid_parameter']);
  expect([...new Set(details.map(({ parameter }) => parameter))].sort().join()).toBe(at);
  for (const detail of details) expect(message).toContain(detail['message']);
  expect(message).toContain(text);
}

it.each([...EMPTY, ...UNKNOWN, ...VALUES, ...GROUP_BY, ...WINDOWS])(
  'parseMetricsRequest rejects %.100s and names %s: %s',
  (...row) => expectRejected(parseMetricsRequest, row),
);

it.each([
  ...['groupBy=account,workspace,resource_type,resource_name', 'groupBy=x'].flatMap((query) =>
    rows('groupBy', 'groupBy must', query),
  ),
  ...rows('account', 'account is empty', 'account='),
  ...rows('accountId', 'account, excludeAccount', 'accountId=acme'),
])('parseMetricsRequest for several accounts rejects %s and names %s: %s', (...row) => {
  expectRejected((query) => parseMetricsRequest(query, ACCOUNTS_METRICS_PARAMETERS), row);
});

it.each([
  ...rows('limit', METRICS_PARAMETERS.replace('resolution, groupBy, ', '').replace(', limit, cursor', ''), 'limit=5'),
  ...[
    'resourceUuid=',
    'resourceType=vm',
    'withoutResourceUuid=yes',
    'excludeResourceType=vm',
    'excludeResourceName=',
  ].flatMap((query) => rows(query.split('=')[0] ?? '', ' ', query)),
  ...rows('resourceName', 'at most 100 values', boxes(101)),
  ...rows('endTime,startTime', 'endTime must be RFC 3339 in UTC', 'startTime=x&endTime=x'),
  ...rows('endTime', 'endTime is missing; it is required.', `startTime=${DAY.startTime}`),
])('parseResourceTypesRequest rejects %.100s and names %s: %s', (...row) => {
  expectRejected(parseResourceTypesRequest, row);
});

it('a long value is cut where a message quotes it', () => {
  const { message } = rejectionOf(() => parseMetricsRequest(`${WINDOW}&resourceType=${'x'.repeat(5_000)}`));
  expect(message.length).toBeLessThan(300);
});
