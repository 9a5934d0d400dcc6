/** Who is counted and limited: an account, and a caller of it. */
export interface Party {
  readonly account: string;
  readonly caller: string;
}

export function accountKey({ account }: Party): string {
  return JSON.stringify([account]);
}

/** Callers of two accounts are two callers, even if they have the same name. */
export function callerKey({ account, caller }: Party): string {
  return JSON.stringify([account, caller]);
}
