/** Limits apply to an account, and to each of its callers. A caller is the service account of an API key, or the subject of a token. */
export interface Principal {
  readonly account: string;
  readonly caller: string;
}

/** Returns a key that identifies a caller. The key includes the account, because callers of different accounts may have the same name. */
export function callerKey({ account, caller }: Principal): string {
  return JSON.stringify([account, caller]);
}
