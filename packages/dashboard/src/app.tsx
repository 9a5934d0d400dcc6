/** Signed out: the way in. Signed in: the explorer. */
import { MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { Explorer } from './explorer.js';
import { prefetchFirstView } from './metrics/queries.js';
import { retryDelay, shouldRetry } from './metrics/retry.js';
import { currentMinute } from './period/current-minute.js';
import { type Ending, forgetCredential, keepCredential, keptCredential } from './session/credential.js';
import { createClient, SessionContext } from './session/session.js';
import { SignIn } from './session/sign-in.js';
import { readView } from './view/view-query.js';

export function App() {
  const [credential, setCredential] = useState(keptCredential);
  const [ending, setEnding] = useState<Ending>();

  const session = useMemo(() => {
    if (credential === undefined) return undefined;
    const end = (why?: Ending) => {
      forgetCredential();
      setEnding(why);
      setCredential(undefined);
    };
    const client = createClient(credential);
    const queries = createQueries(() => end('refused'));
    prefetchFirstView(queries, client, readView(location.search), currentMinute());
    return { client, queries, signOut: () => end() };
  }, [credential]);

  if (!session) {
    const enter = (entered: string) => {
      keepCredential(entered);
      setEnding(undefined);
      setCredential(entered);
    };
    return <SignIn ending={ending} onSignedIn={enter} />;
  }
  return (
    <SessionContext value={session}>
      <QueryClientProvider client={session.queries}>
        <Explorer />
      </QueryClientProvider>
    </SessionContext>
  );
}

/** New for every session: nobody sees what the one before has read. */
function createQueries(onRefused: () => void): QueryClient {
  const onError = (error: Error) => {
    if (error instanceof MeterlineError && error.status === 401) onRefused();
  };
  return new QueryClient({
    queryCache: new QueryCache({ onError }),
    mutationCache: new MutationCache({ onError }),
    defaultOptions: {
      queries: {
        staleTime: Number.POSITIVE_INFINITY,
        refetchOnWindowFocus: false,
        retry: shouldRetry,
        retryDelay,
      },
      mutations: { retry: shouldRetry, retryDelay },
    },
  });
}
