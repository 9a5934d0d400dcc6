/** The sign-in page or, with a key or token, the explorer. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { MeterlineError } from '@meterline/client';
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { currentSecond } from '../period/period.js';
import { retryDelay, shouldRetry, shouldRetryExport } from '../states/problem.js';
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
import { createClient, SessionContext, SHARED_SECONDS } from './session.js';
import { SignIn } from './sign-in.js';

const shownAccount = () => readView(location.search).account;

export function App() {
  const [credential, setCredential] = useState(keptCredential);
  const [isAsking, setAsking] = useState(credential === undefined);
  /** Why the last session ended; undefined: the person ended it. */
  const [endedBecause, setEndedBecause] = useState<string>();

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
    const end = (reason?: string) => {
      forgetCredential();
      setEndedBecause(reason);
      setCredential(undefined);
    };
    const client = createClient(credential);
    const queries = createQueries(end);
    const signOut = () => {
      tellEnded(credential);
      end();
    };
    return { client, queries, openedAt: currentSecond(), signOut, end, maxAgeSeconds: SHARED_SECONDS };
  }, [credential]);

  useEffect(() => {
    if (!session || credential === undefined) return;
    return answerOtherTabs({ credential, account: shownAccount, onEnded: session.end });
  }, [session, credential]);

  if (isAsking) return null;
  if (!session) {
    const enter = (entered: string) => {
      keepCredential(entered);
      setEndedBecause(undefined);
      setCredential(entered);
    };
    return <SignIn endedBecause={endedBecause} onSignedIn={enter} />;
  }
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
