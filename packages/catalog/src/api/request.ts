/**
 * Defines roles, API versions and limits of requests. This file contains no zod schemas, because a page does not need them. Source:
 * docs/api-contract.md, "Versions", "Roles" and "Pages".
 */
import type { MetricsField } from '../dimensions.js';

/** An admin sees usage by workspace, while a member sees only the account as a whole. */
export const ROLES = ['admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

/** Roles of an API key that belongs to one account. An emitter may send events of the account, but not read anything. */
export const ACCOUNT_KEY_ROLES = [...ROLES, 'emitter'] as const;
/**
 * Roles that apply to all accounts, for tokens and for keys without an account. An operator may read every account like an admin, but not
 * change anything. A provisioner may name accounts and manage their API keys, but not read usage. An emitter may send events of any
 * account, but not read anything.
 */
export const PLATFORM_ROLES = ['operator', 'provisioner', 'emitter'] as const;
export type PlatformRole = (typeof PLATFORM_ROLES)[number];

export const LISTED_ROLES = [...ROLES, 'operator', 'provisioner'] as const;

export const KEY_ROLES = [...ACCOUNT_KEY_ROLES, 'operator', 'provisioner'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** The version that applies if a request does not name one. */
export const EARLIEST_API_VERSION = '2026-04-16';
/** The version that our client requests and that the API reference describes. */
export const NEWEST_API_VERSION = '2026-04-28';
/** Preview versions are not supported. */
export const API_VERSIONS = [EARLIEST_API_VERSION, NEWEST_API_VERSION] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/** Since this version, lists have the form `{ data, meta }`. Before, they were arrays. */
export const PAGINATED_LISTS_SINCE: ApiVersion = '2026-04-28';

export function isApiVersion(value: string): value is ApiVersion {
  return (API_VERSIONS as readonly string[]).includes(value);
}

export function hasPaginatedLists(version: ApiVersion): boolean {
  return version >= PAGINATED_LISTS_SINCE;
}

export const MAX_METRICS_PAGE = 100;
/** The maximum number of values in all filters of a request together. */
export const MAX_FILTER_VALUES = 100;
/**
 * The maximum number of points on one page: groups times buckets. A point takes about 60 to 100 bytes, so a page has at most 2 MB. With hourly,
 * daily and weekly buckets, 100 groups always fit, because the window is limited: 7 days have at most 169 hours.
 */
export const MAX_PAGE_POINTS = 20_000;
export const DEFAULT_EVENTS_PAGE = 100;
export const MAX_EVENTS_PAGE = 1_000;
export const EVENT_SORT_KEYS = ['timestamp', 'cost'] as const;
export const EVENT_SORT_ORDERS = ['asc', 'desc'] as const;
/** Events can be listed by cost only if the account has at most this many stored revisions of events in the hours of the window. */
export const MAX_EVENTS_BY_COST = 1_000_000;
export const DEFAULT_LIST_PAGE = 50;
export const MAX_LIST_PAGE = 200;
export const DEFAULT_LIST_SORT = 'createdAt:desc';

/** A sentence for descriptions in the API reference. */
export const EXTENSIBLE = 'The examples are built in; the platform may have added others.';

export const EXCLUDING_PARAMETER = {
  account: 'excludeAccount',
  workspace: 'excludeWorkspace',
  resourceType: 'excludeResourceType',
  resourceName: 'excludeResourceName',
  resourceUuid: 'excludeResourceUuid',
  billingDimension: 'excludeBillingDimension',
} as const satisfies Record<MetricsField, string>;
