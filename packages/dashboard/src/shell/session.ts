/** Who is signed in: the client that uses the tab's key or token, and the cache of its responses. */
import type { EpochMs } from '@meterline/catalog';
import { MeterlineClient, MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry, shouldRetryExport } from '../states/problem.js';

export interface Session {
  readonly client: MeterlineClient;
  /** Each session has its own: nobody sees the responses of the session before. */
  readonly queries: QueryClient;
  /** What the first screen is as of. */
  readonly openedAt: EpochMs;
  readonly signOut: () => void;
  /** Aborted when the session is not shown any more. */
  readonly over: AbortController;
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

interface Ends {
  /** The API does not accept the key or token any more. */
  readonly end: (reason?: string) => void;
  readonly signOut?: () => void;
}

export function createSession(client: MeterlineClient, { end, signOut = end }: Ends): Session {
  const over = new AbortController();
  const onError = (error: Error) => {
    // What it had asked for may fail after its end, when another one has begun.
    if (!over.signal.aborted && error instanceof MeterlineError && error.status === 401) end(error.message);
  };
  const queries = new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: Number.POSITIVE_INFINITY,
        refetchOnWindowFocus: false,
        retry: (_failures, error) => shouldRetry(error),
        retryDelay,
      },
      mutations: { retry: shouldRetryExport, retryDelay },
    },
  });
  return {
    client,
    queries,
    openedAt: currentSecond(),
    signOut,
    over,
    maxAgeSeconds: SHARED_SECONDS,
  };
}
