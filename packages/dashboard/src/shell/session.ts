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
