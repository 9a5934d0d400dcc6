/** The sign-in page or, with a key or token, the explorer. */
import { useEffect, useMemo, useState } from 'react';
import { readView } from '../view/address.js';
import {
  answerOtherTabs,
  askOtherTabs,
  forgetCredential,
  keepCredential,
  keptCredential,
  tellEnded,
} from './credential.js';
import { createClient } from './session.js';
import { SignIn } from './sign-in.js';
import { createSession, SignedIn } from './signed-in.js';

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
    const signOut = () => {
      tellEnded(credential);
      end();
    };
    return { ...createSession(createClient(credential), { end, signOut }), end };
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
  return <SignedIn session={session} />;
}
