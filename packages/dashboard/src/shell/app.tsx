/** The sign-in page or, with a key or token, the explorer. */
import { MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import { prefetchFirstView } from '../metrics/queries.js';
import { currentMinute } from '../period/period.js';
import { retryDelay, shouldRetry } from '../states/problem.js';
import { readView } from '../view/address.js';
import { Explorer } from './explorer.js';
import { createClient, forgetCredential, keepCredential, keptCredential, SessionContext } from './session.js';
import { SignIn } from './sign-in.js';

export function App() {
  const [credential, setCredential] = useState(keptCredential);
  const [wasRefused, setWasRefused] = useState(false);

  const session = useMemo(() => {
    if (credential === undefined) return undefined;
    const end = (refused: boolean) => {
      forgetCredential();
      setWasRefused(refused);
      setCredential(undefined);
    };
    const client = createClient(credential);
    const queries = createQueries(() => end(true));
    prefetchFirstView(queries, client, readView(location.search), currentMinute());
    return { client, queries, signOut: () => end(false) };
  }, [credential]);

  if (!session) {
    const enter = (entered: string) => {
      keepCredential(entered);
      setWasRefused(false);
      setCredential(entered);
    };
    return <SignIn wasRefused={wasRefused} onSignedIn={enter} />;
  }
  return (
    <SessionContext value={session}>
      <QueryClientProvider client={session.queries}>
        <Explorer />
      </QueryClientProvider>
    </SessionContext>
  );
}

/** Each session has its own cache: nobody sees the answers of the session before. */
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
