/** The account and the caller that limits apply to. The caller is the service account of an API key, or the subject of a token. */
export interface Principal {
  readonly account: string;
  readonly caller: string;
}

/** Returns a key that identifies a caller. Callers of different accounts get different keys, even if they have the same name. */
export function callerKey({ account, caller }: Principal): string {
  return JSON.stringify([account, caller]);
}
