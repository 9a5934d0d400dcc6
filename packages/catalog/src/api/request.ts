/**
 * What a request comes with, and how much it may ask for: without the schemas that check it, which a page does not need. Source: DESIGN
 * section 7 (roles), and the API specification, section "Versioning".
 */
import type { MetricsField } from '../dimensions.js';

/** An admin sees workspaces one by one; a member sees the account as a whole. */
export const ROLES = ['admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

/** The roles of an API key of one account. An emitter sends events of the account and reads nothing. */
export const ACCOUNT_KEY_ROLES = [...ROLES, 'emitter'] as const;
/**
 * The roles for all accounts, of keys without an account and of tokens. An operator reads every account as an admin and changes nothing; a
 * provisioner names accounts and manages their API keys, and reads no usage; an emitter sends events of any account and reads nothing.
 */
export const PLATFORM_ROLES = ['operator', 'provisioner', 'emitter'] as const;
export type PlatformRole = (typeof PLATFORM_ROLES)[number];

/** The role of a caller in an account that the API lists. */
export const LISTED_ROLES = [...ROLES, 'operator', 'provisioner'] as const;

export const KEY_ROLES = [...ACCOUNT_KEY_ROLES, 'operator', 'provisioner'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** Applies when the caller names none. */
export const EARLIEST_API_VERSION = '2026-04-16';
/** What our client requests, and the reference describes. */
export const NEWEST_API_VERSION = '2026-04-28';
/** Exactly these are valid, previews are not. */
export const API_VERSIONS = [EARLIEST_API_VERSION, NEWEST_API_VERSION] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/** From this version on, lists are `{ data, meta }`; before it, bare arrays. */
export const PAGINATED_LISTS_SINCE: ApiVersion = '2026-04-28';

export function isApiVersion(value: string): value is ApiVersion {
  return (API_VERSIONS as readonly string[]).includes(value);
}

export function hasPaginatedLists(version: ApiVersion): boolean {
  return version >= PAGINATED_LISTS_SINCE;
}

export const MAX_METRICS_PAGE = 100;
/** Accounts that no HTTP address can have: between slashes these are the folder itself and the one above, however they are written. */
export const NO_ACCOUNT_PATH = /^\.{0,2}$/;

/**
 * The address of an API or a collector in one form, so that two can be compared: without `/v0`, and without a slash at its end.
 * @param errorOf is given what is wrong, in words that follow the name of the address and never repeat it: it may hold a secret
 * @throws what that makes, unless it is a URL of http or https with nothing but a host, a port and a path
 */
export function serviceAddress(text: string, errorOf: (problem: string) => Error): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw errorOf('must be a URL such as https://billing.example.com or http://127.0.0.1:8080');
  }
  if (url.username || url.password || url.search || url.hash) {
    throw errorOf('must be a URL without user and password, ? and #; a key has a place of its own');
  }
  return `${url.origin}${url.pathname}`.replace(/\/+$/, '').replace(/\/v0$/, '');
}

/** The most values of all filters of a request together. */
export const MAX_FILTER_VALUES = 100;
/**
 * The most points of one page, in all its series: groups times buckets. A point takes some 60 to 100 bytes, so a page has 2 MB
 * at most. Every window with a capped resolution has its 100 groups: 7 days have 169 hours at most.
 */
export const MAX_PAGE_POINTS = 20_000;
export const DEFAULT_EVENTS_PAGE = 100;
export const MAX_EVENTS_PAGE = 1_000;
/** The default page size of the lists of accounts and of keys. */
export const DEFAULT_LIST_PAGE = 50;
export const MAX_LIST_PAGE = 200;
export const DEFAULT_LIST_SORT = 'createdAt:desc';

/** The parameter that leaves out values of a field. */
export const EXCLUDING_PARAMETER = {
  account: 'excludeAccount',
  workspace: 'excludeWorkspace',
  resourceType: 'excludeResourceType',
  resourceName: 'excludeResourceName',
  resourceUuid: 'excludeResourceUuid',
  billingDimension: 'excludeBillingDimension',
} as const satisfies Record<MetricsField, string>;
