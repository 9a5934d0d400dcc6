/** The API key or token: in the tab's session storage, so that a reload keeps it and closing the tab forgets it. */

const STORAGE_KEY = 'meterline.credential';

/** Why a session ended without the person's wish. */
export type Ending = 'refused';

export function keptCredential(): string | undefined {
  return sessionStorage.getItem(STORAGE_KEY) || undefined;
}

export function keepCredential(credential: string): void {
  sessionStorage.setItem(STORAGE_KEY, credential);
}

export function forgetCredential(): void {
  sessionStorage.removeItem(STORAGE_KEY);
}
