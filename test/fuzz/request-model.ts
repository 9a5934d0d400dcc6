/**
 * What the API must say to a request, worked out from the specification and DESIGN sections 6 and 7 without the product's
 * code: `200`, or the status and the code of the error.
 */

import { nameOf } from '../model/event-rules.js';
import { bucketsOf, defaultResolution, instantOf, latestEnd } from '../oracle/calendar.js';
import { DIMENSIONS } from '../oracle/prices.js';
import { type CallerCase, FOREIGN_KEY_BODY, type Role } from './request-cases.js';

/** Of who asks, by account. All ask with API keys; test/contract/tokens has what the scopes of tokens allow. */
type Roles = Readonly<Record<string, Role>>;

const LONGEST_HEAD = 48 * 1024;
const LONGEST_TARGET = 24 * 1024;
const LONGEST_BODY = 16 * 1024;
const VERSIONS = ['2026-04-16', '2026-04-28'];
/** 0001-01-01. */
const START_OF_TIME = -62_135_596_800_000;
const MOST_FILTER_VALUES = 100;
const MOST_BUCKETS = 20_000;
const RESOLUTIONS = ['hourly', 'daily', 'weekly', 'monthly'] as const;
const SORTS = ['createdAt:desc', 'createdAt:asc', 'name:asc', 'name:desc'];
const GROUPS = ['workspace', 'resource_type', 'resource_name', 'resource_uuid', 'billing_dimension'];

/** Undefined: any answer below 500, because the document does not describe it. */
export function expectedOutcome(sent: CallerCase): string | undefined {
  const { method, target, headers, body } = sent;
  if (target.length > LONGEST_HEAD) return '431 headers_too_large';
  if (target.length > LONGEST_TARGET) return '414 url_too_long';
  if (headers['expect'] !== undefined) return '417 expectation_failed';
  if (!isEncoded(target)) return '400 malformed_url';
  // A body of no bytes has an encoding too.
  if (body !== undefined) {
    const encoding = String(headers['content-encoding'] ?? 'identity');
    if (encoding !== 'identity') return '415 ';
    if (body.length > LONGEST_BODY) return '413 body_too_large';
  }
  const mark = target.indexOf('?');
  const path = mark < 0 ? target : target.slice(0, mark);
  const query = new URLSearchParams(mark < 0 ? '' : target.slice(mark + 1));
  // What the API says about alerts is in test/contract/alerts.
  if (path === '/' || path.startsWith('/assets/') || /^\/v0\/accounts\/[^/]+\/alerts(\/|$)/.test(path))
    return undefined;
  const routes = ROUTES.filter(({ pattern }) => pattern.test(path));
  if (routes.length === 0) return '404 not_found';
  const route = routes.find(({ methods }) => methods.includes(method));
  if (!route) return '405 method_not_allowed';
  const [, account = ''] = route.pattern.exec(path) ?? [];
  const { answer = '200' } = route;
  const outcome = typeof answer === 'string' ? answer : answerTo(sent, query, decodeURIComponent(account), answer);
  // "Only if there is none": RFC 9110, section 13.1.2. Such an answer is for caches, and in no OpenAPI document.
  return outcome === '200' && headers['if-none-match'] === '*' && READ.includes(method) ? undefined : outcome;
}

/** The outcome for a caller who is known and sends a version that exists. */
type Answer = (query: URLSearchParams, roles: Roles, account: string, version: string, body: string) => string;

function answerTo(sent: CallerCase, query: URLSearchParams, account: string, answer: Answer): string {
  const { caller, headers, body = '' } = sent;
  if (typeof caller.roles === 'string') return caller.roles;
  const version = headers['Svc-Version'] ?? VERSIONS[0];
  const trimmed = Array.isArray(version) ? version.join(', ') : String(version).trim();
  if (!VERSIONS.includes(trimmed)) return '400 invalid_api_version';
  return answer(query, caller.roles, account, trimmed, body.toString());
}

const READ = ['GET', 'HEAD'];
const KEYS = /^\/v0\/service_accounts\/([^/]+)\/api_keys$/;
interface Route {
  readonly pattern: RegExp;
  readonly methods: readonly string[];
  /** A text, and where there is none 200, for everybody. */
  readonly answer?: Answer | string;
}
const ROUTES: readonly Route[] = [
  { pattern: /^\/(?:healthz|readyz|openapi\.json|docs)$/, methods: READ },
  // Of a service that accepts keys only.
  { pattern: /^\/\.well-known\/oauth-protected-resource$/, methods: READ, answer: '404 not_found' },
  { pattern: /^\/v0\/accounts$/, methods: READ, answer: accounts },
  { pattern: /^\/v0\/accounts\/([^/]+)\/metrics$/, methods: READ, answer: metrics },
  { pattern: /^\/v0\/metrics$/, methods: READ, answer: metricsOfAll },
  { pattern: /^\/v0\/accounts\/([^/]+)\/metrics\/enums\/group-by$/, methods: READ, answer: staticEnum },
  { pattern: /^\/v0\/accounts\/([^/]+)\/metrics\/enums\/billing-dimensions$/, methods: READ, answer: staticEnum },
  { pattern: /^\/v0\/accounts\/([^/]+)\/metrics\/enums\/resource-types$/, methods: READ, answer: resourceTypes },
  { pattern: /^\/v0\/accounts\/([^/]+)\/events$/, methods: READ, answer: events },
  { pattern: KEYS, methods: READ, answer: keyList },
  { pattern: KEYS, methods: ['POST'], answer: keyCreation },
  { pattern: /^\/v0\/service_accounts\/([^/]+)\/api_keys\/[^/]+$/, methods: ['DELETE'], answer: revocation },
];

function accounts(sent: URLSearchParams, _roles: Roles, _account: string, version: string): string {
  if (!areListParameters(withoutWorkspace(sent), version, SORTS)) return '400 invalid_parameter';
  return version !== VERSIONS[0] && sent.get('cursor') ? '400 invalid_cursor' : '200';
}

function areListParameters(query: URLSearchParams, version: string, sorts: readonly string[]): boolean {
  if (version === VERSIONS[0]) return query.size === 0;
  return (
    isKnown(query, ['limit', 'cursor', 'sort'], ['cursor']) &&
    each(query, 'limit', isPageSize) &&
    each(query, 'sort', (text) => sorts.includes(text))
  );
}

/** The fuzz names no service account that has a key. */
function keyList(query: URLSearchParams, roles: Roles, _clientId: string, version: string): string {
  if (!Object.values(roles).includes('admin')) return '403 forbidden';
  const sorts = SORTS.filter((sort) => sort.startsWith('createdAt'));
  return areListParameters(withoutWorkspace(query), version, sorts) ? '404 not_found' : '400 invalid_parameter';
}

/** No body of the fuzz creates a key. */
function keyCreation(query: URLSearchParams, roles: Roles, clientId: string, _version: string, body: string): string {
  if (!Object.values(roles).includes('admin')) return '403 forbidden';
  if (withoutWorkspace(query).size > 0 || !isName(clientId)) return '400 invalid_parameter';
  return body === FOREIGN_KEY_BODY ? '403 forbidden' : '400 invalid_body';
}

function staticEnum(query: URLSearchParams, roles: Roles, account: string): string {
  return refusedTo(roles, account) ?? (query.size === 0 ? '200' : '400 invalid_parameter');
}

function resourceTypes(query: URLSearchParams, roles: Roles, account: string): string {
  const refusal = refusedTo(roles, account);
  if (refusal) return refusal;
  const fits = isKnown(query, ['startTime', 'endTime', ...FILTERS, ...FLAGS], []) && windowOf(query) !== undefined;
  if (!fits || !areFilters(query)) return '400 invalid_parameter';
  return filtersByWorkspace(query) && roles[account] !== 'admin' ? '403 forbidden' : '200';
}

function events(query: URLSearchParams, roles: Roles, account: string): string {
  const refusal = refusedTo(roles, account) ?? (roles[account] === 'admin' ? undefined : '403 forbidden');
  if (refusal) return refusal;
  const names = ['startTime', 'endTime', ...FILTERS, ...FLAGS, 'includeVoided', 'limit', 'cursor'];
  const fits =
    isKnown(query, names, ['cursor']) &&
    windowOf(query) !== undefined &&
    areFilters(query) &&
    each(query, 'includeVoided', isFlag) &&
    each(query, 'limit', isPageSize);
  if (!fits) return '400 invalid_parameter';
  return query.get('cursor') ? '400 invalid_cursor' : '200';
}

/** Lists of the management API take a workspace and do not look at it. */
function withoutWorkspace(query: URLSearchParams): URLSearchParams {
  return new URLSearchParams([...query].filter(([name]) => name !== 'workspace'));
}

/** The fuzz knows no key id, so that it cannot revoke one. */
function revocation(query: URLSearchParams): string {
  return withoutWorkspace(query).size === 0 ? '404 not_found' : '400 invalid_parameter';
}

function metrics(query: URLSearchParams, roles: Roles, account: string): string {
  const refusal = refusedTo(roles, account);
  if (refusal) return refusal;
  if (!areMetricsParameters(query)) return '400 invalid_parameter';
  if (query.get('cursor')) return '400 invalid_cursor';
  const readsWorkspaces = filtersByWorkspace(query) || groupsOf(query).includes('workspace');
  return readsWorkspaces && roles[account] !== 'admin' ? '403 forbidden' : '200';
}

function metricsOfAll(query: URLSearchParams, roles: Roles): string {
  if (!areMetricsParameters(query, true)) return '400 invalid_parameter';
  const [named, left] = ACCOUNTS.map((name) => query.getAll(name));
  const refusal = [...(named ?? []), ...(left ?? [])].map((account) => refusedTo(roles, account)).find(Boolean);
  if (refusal) return refusal;
  if (query.get('cursor')) return '400 invalid_cursor';
  const asked = (named?.length ? named : Object.keys(roles)).filter((account) => !left?.includes(account));
  const readsWorkspaces = filtersByWorkspace(query) || groupsOf(query).includes('workspace');
  return readsWorkspaces && asked.some((account) => roles[account] !== 'admin') ? '403 forbidden' : '200';
}

/** Of all accounts alone. */
const ACCOUNTS = withExclusion('account');
const NAMES = ['workspace', 'resourceName', 'resourceUuid'].flatMap(withExclusion);
const TYPES = withExclusion('resourceType');
const BILLING_DIMENSIONS = withExclusion('billingDimension');
const FILTERS = [...NAMES, ...TYPES, ...BILLING_DIMENSIONS];
const FLAGS = withExclusion('withoutResourceUuid');

function withExclusion(name: string): string[] {
  return [name, `exclude${name.charAt(0).toUpperCase()}${name.slice(1)}`];
}

function areMetricsParameters(query: URLSearchParams, isOfAll = false): boolean {
  const own = isOfAll ? ACCOUNTS : [];
  const names = ['startTime', 'endTime', 'resolution', 'groupBy', ...own, ...FILTERS, ...FLAGS, 'limit', 'cursor'];
  const window = windowOf(query);
  if (!window || !isKnown(query, names, ['cursor'])) return false;
  const resolution = query.get('resolution');
  const asked = RESOLUTIONS.find((known) => known === resolution);
  if (resolution !== null && (!asked || window.end > latestEnd(window.start, asked))) return false;
  // No other resolution allows so many.
  if (bucketsOf(window.start, window.end, asked ?? defaultResolution(window.start, window.end)).length > MOST_BUCKETS) {
    return false;
  }
  return (
    (!query.has('groupBy') || isGrouping(groupsOf(query), isOfAll ? ['account', ...GROUPS] : GROUPS)) &&
    areFilters(query) &&
    each(query, 'limit', isPageSize)
  );
}

function filtersByWorkspace(query: URLSearchParams): boolean {
  return query.has('workspace') || query.has('excludeWorkspace');
}

/** Several values of a filter are alternatives or all left out; there may be only so many of all filters. */
function areFilters(query: URLSearchParams): boolean {
  const types = Object.values(DIMENSIONS).map(({ resourceType }) => resourceType);
  const values = [...ACCOUNTS, ...FILTERS].flatMap((name) => [...new Set(query.getAll(name))]);
  return (
    values.length + FLAGS.filter((name) => query.get(name) === 'true').length <= MOST_FILTER_VALUES &&
    [...ACCOUNTS, ...NAMES].every((name) => each(query, name, isName)) &&
    TYPES.every((name) => each(query, name, (text) => types.includes(text))) &&
    BILLING_DIMENSIONS.every((name) => each(query, name, (text) => Object.hasOwn(DIMENSIONS, text))) &&
    FLAGS.every((name) => each(query, name, isFlag))
  );
}

function refusedTo(roles: Roles, account: string): string | undefined {
  return Object.hasOwn(roles, account) ? undefined : '403 forbidden';
}

function windowOf(query: URLSearchParams): { start: number; end: number } | undefined {
  const [start, end] = ['startTime', 'endTime'].map((name) => instantOf(query.get(name) ?? ''));
  if (start === undefined || end === undefined) return undefined;
  return start >= START_OF_TIME && start < end ? { start, end } : undefined;
}

/** Every parameter is one of the names, is sent once unless it may repeat, and has a value unless it may be empty. */
function isKnown(query: URLSearchParams, names: readonly string[], mayBeEmpty: readonly string[]): boolean {
  const mayRepeat = [...ACCOUNTS, ...FILTERS, 'groupBy'];
  return [...query].every(
    ([name, value]) =>
      names.includes(name) &&
      (query.getAll(name).length === 1 || mayRepeat.includes(name)) &&
      (value !== '' || mayBeEmpty.includes(name)),
  );
}

function each(query: URLSearchParams, name: string, fits: (text: string) => boolean): boolean {
  return query.getAll(name).every(fits);
}

function isFlag(text: string): boolean {
  return text === 'true' || text === 'false';
}

function isName(text: string): boolean {
  return nameOf(text) !== undefined;
}

function isPageSize(text: string): boolean {
  return /^[0-9]+$/.test(text) && /[1-9]/.test(text);
}

/** The names come with commas between them, in parameters of their own, or both. */
function groupsOf(query: URLSearchParams): string[] {
  return query.getAll('groupBy').flatMap((text) => text.split(','));
}

function isGrouping(names: readonly string[], known: readonly string[]): boolean {
  return names.length <= 3 && new Set(names).size === names.length && names.every((name) => known.includes(name));
}

/** Visible ASCII whose percent-encoding is UTF-8. */
function isEncoded(target: string): boolean {
  if (!/^[\x21-\x7e]*$/.test(target) || /%(?![0-9a-f]{2})/i.test(target)) return false;
  const bytes = Buffer.from(
    target.replace(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  );
  return Buffer.from(bytes.toString('utf8')).equals(bytes);
}
