/** Who is signed in: the key or token, kept by the browser's tab, and the client that uses it. */
import { MeterlineClient } from '@meterline/client';
import type { QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';

export interface Session {
  readonly client: MeterlineClient;
  readonly queries: QueryClient;
  readonly signOut: () => void;
}

export const SessionContext = createContext<Session | undefined>(undefined);

export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('there is no session outside SessionContext');
  return session;
}

/** Without retries: the page retries by itself, and shows that it does. */
export function createClient(credential: string): MeterlineClient {
  return new MeterlineClient({ baseUrl: location.origin, credential, retries: 0 });
}

/** In session storage: a reload keeps it, and closing the tab removes it. */
const STORAGE_KEY = 'meterline.credential';

export function keptCredential(): string | undefined {
  return sessionStorage.getItem(STORAGE_KEY) || undefined;
}

export function keepCredential(credential: string): void {
  sessionStorage.setItem(STORAGE_KEY, credential);
}

export function forgetCredential(): void {
  sessionStorage.removeItem(STORAGE_KEY);
}
