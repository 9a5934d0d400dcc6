/**
 * Defines roles, API versions and limits of requests, without the zod schemas, which a page does not need. Source: DESIGN section 7
 * (roles), and the API specification, section "Versioning".
 */
import type { MetricsField } from '../dimensions.js';

/** An admin sees usage by workspace; a member sees the account as a whole. */
export const ROLES = ['admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

/** Roles of an API key of one account. An emitter sends events of the account and reads nothing. */
export const ACCOUNT_KEY_ROLES = [...ROLES, 'emitter'] as const;
/**
 * Roles that apply to all accounts, for keys without an account and for tokens. An operator reads every account like an admin and changes
 * nothing. A provisioner names accounts and manages their API keys, and reads no usage. An emitter sends events of any account and reads
 * nothing.
 */
export const PLATFORM_ROLES = ['operator', 'provisioner', 'emitter'] as const;
export type PlatformRole = (typeof PLATFORM_ROLES)[number];

/** Roles of a caller in the API's list of accounts. */
export const LISTED_ROLES = [...ROLES, 'operator', 'provisioner'] as const;

export const KEY_ROLES = [...ACCOUNT_KEY_ROLES, 'operator', 'provisioner'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** The default version. */
export const EARLIEST_API_VERSION = '2026-04-16';
/** The version that our client requests and the API reference describes. */
export const NEWEST_API_VERSION = '2026-04-28';
/** Preview versions are not supported. */
export const API_VERSIONS = [EARLIEST_API_VERSION, NEWEST_API_VERSION] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/** From this version on, lists are `{ data, meta }`; before, they are bare arrays. */
export const PAGINATED_LISTS_SINCE: ApiVersion = '2026-04-28';

export function isApiVersion(value: string): value is ApiVersion {
  return (API_VERSIONS as readonly string[]).includes(value);
}

export function hasPaginatedLists(version: ApiVersion): boolean {
  return version >= PAGINATED_LISTS_SINCE;
}

export const MAX_METRICS_PAGE = 100;
/** Per request, over all its filters. */
export const MAX_FILTER_VALUES = 100;
/**
 * Maximum number of points on one page: groups times buckets. A point takes about 60 to 100 bytes, so a page is at most 2 MB. Windows whose
 * length is capped always fit 100 groups: 7 days have at most 169 hours.
 */
export const MAX_PAGE_POINTS = 20_000;
export const DEFAULT_EVENTS_PAGE = 100;
export const MAX_EVENTS_PAGE = 1_000;
/** Default page size of lists of the management API. */
export const DEFAULT_LIST_PAGE = 50;
export const MAX_LIST_PAGE = 200;
export const DEFAULT_LIST_SORT = 'createdAt:desc';

export const EXCLUDING_PARAMETER = {
  account: 'excludeAccount',
  workspace: 'excludeWorkspace',
  resourceType: 'excludeResourceType',
  resourceName: 'excludeResourceName',
  resourceUuid: 'excludeResourceUuid',
  billingDimension: 'excludeBillingDimension',
} as const satisfies Record<MetricsField, string>;
