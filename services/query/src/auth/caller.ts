import type { Role } from '@meterline/access';

/** Who asks, and what they may see. */
export interface Caller {
  /** The service account of an API key, or the subject of a JWT: it stays the same when the token is renewed. */
  readonly id: string;
  /** The scopes of a JWT; undefined for an API key, which needs none. */
  readonly scopes: ReadonlySet<string> | undefined;
  /** The accounts that the caller belongs to. */
  readonly roles: ReadonlyMap<string, Role>;
}
