/** The sign-in page or, with a key or token, the explorer. */
import { MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { prefetchFirstView } from '../metrics/queries.js';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry } from '../states/problem.js';
import { readView } from '../view/address.js';
import {
  answerOtherTabs,
  askOtherTabs,
  forgetCredential,
  keepCredential,
  keptCredential,
  tellEnded,
} from './credential.js';
import { Explorer } from './explorer.js';
import { createClient, SessionContext } from './session.js';
import { SignIn } from './sign-in.js';

const shownAccount = () => readView(location.search).account;

export function App() {
  const [credential, setCredential] = useState(keptCredential);
  const [isAsking, setAsking] = useState(credential === undefined);
  const [wasRefused, setWasRefused] = useState(false);

  useEffect(() => {
    if (!isAsking) return;
    void askOtherTabs(shownAccount()).then((given) => {
      if (given !== undefined) {
        keepCredential(given);
        setCredential(given);
      }
      setAsking(false);
    });
  }, [isAsking]);

  const session = useMemo(() => {
    if (credential === undefined) return undefined;
    const end = (refused: boolean) => {
      forgetCredential();
      setWasRefused(refused);
      setCredential(undefined);
    };
    const client = createClient(credential);
    const queries = createQueries(() => end(true));
    const openedAt = currentSecond();
    prefetchFirstView(queries, client, readView(location.search), openedAt);
    const signOut = () => {
      tellEnded(credential);
      end(false);
    };
    return { client, queries, openedAt, signOut, end };
  }, [credential]);

  useEffect(() => {
    if (!session || credential === undefined) return;
    return answerOtherTabs({ credential, account: shownAccount, onEnded: () => session.end(false) });
  }, [session, credential]);

  if (isAsking) return null;
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
