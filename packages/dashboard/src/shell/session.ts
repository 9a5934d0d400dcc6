/** Who is signed in: the client that uses the tab's key or token. */
import type { EpochMs } from '@meterline/catalog';
import { MeterlineClient } from '@meterline/client';
import type { QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';

export interface Session {
  readonly client: MeterlineClient;
  readonly queries: QueryClient;
  /** What the first screen is as of. */
  readonly openedAt: EpochMs;
  readonly signOut: () => void;
  /** Seconds that a response may be old: 0 once the person has asked for a refresh, until the page refreshes by itself. */
  maxAgeSeconds: number;
}

/** So old may the responses be that nobody asked for: tabs that refresh share them. */
export const SHARED_SECONDS = 15;

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
