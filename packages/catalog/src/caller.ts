/** What a caller comes with: a role in an account (DESIGN section 7), and a version of the API (the API specification, "Versioning"). */

/** An admin sees workspaces one by one; a member sees the account as a whole. */
export const ROLES = ['admin', 'member'] as const;
export type Role = (typeof ROLES)[number];

/** What a key that the API makes may do: read as one of these, or send events of its account and read nothing. */
export const ACCOUNT_KEY_ROLES = [...ROLES, 'emitter'] as const;
/** An operator's key reads every account, as an admin of it, and changes nothing. */
export const KEY_ROLES = [...ACCOUNT_KEY_ROLES, 'operator'] as const;
export type KeyRole = (typeof KEY_ROLES)[number];

/** Ascending; exactly these are valid, previews are not. */
export const API_VERSIONS = ['2026-04-16', '2026-04-28'] as const;
export type ApiVersion = (typeof API_VERSIONS)[number];

/** Applies when the caller names none. */
export const EARLIEST_API_VERSION: ApiVersion = API_VERSIONS[0];

/** From this version on, lists are `{ data, meta }`; before it, bare arrays. */
export const PAGINATED_LISTS_SINCE: ApiVersion = '2026-04-28';

export function isApiVersion(value: string): value is ApiVersion {
  return (API_VERSIONS as readonly string[]).includes(value);
}

export function hasPaginatedLists(version: ApiVersion): boolean {
  return version >= PAGINATED_LISTS_SINCE;
}
