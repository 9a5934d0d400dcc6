/** The explorer, with a session. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { type MeterlineClient, MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry, shouldRetryExport } from '../states/problem.js';
import { Explorer } from './explorer.js';
import { type Session, SessionContext, SHARED_SECONDS } from './session.js';

interface Ends {
  /** The API does not accept the key or token any more. */
  readonly end: (reason?: string) => void;
  readonly signOut?: () => void;
}

export function createSession(client: MeterlineClient, { end, signOut = end }: Ends): Session {
  return { client, queries: createQueries(end), openedAt: currentSecond(), signOut, maxAgeSeconds: SHARED_SECONDS };
}

export function SignedIn({ session }: { readonly session: Session }) {
  return (
    <SessionContext value={session}>
      <QueryClientProvider client={session.queries}>
        {/* The content security policy allows no style elements; the page's own style has what they would say. */}
        <CSPProvider disableStyleElements>
          <Explorer />
        </CSPProvider>
      </QueryClientProvider>
    </SessionContext>
  );
}

/** Each session has its own cache: nobody sees the answers of the session before. */
function createQueries(onRejected: (reason: string) => void): QueryClient {
  const onError = (error: Error) => {
    if (error instanceof MeterlineError && error.status === 401) onRejected(error.message);
  };
  return new QueryClient({
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
}
