/** The page's entry: the sign-in page or, with a key or token, the explorer; inside another page the explorer alone. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { MeterlineClient } from '@meterline/client';
import { QueryClientProvider } from '@tanstack/react-query';
import { useEffect, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { isEmbedded } from './shell/embed-address.js';
import { ParentKey } from './shell/embedding.js';
import { Explorer } from './shell/explorer.js';
import { applyTheme } from './shell/header.js';
import { serviceAddress } from './shell/service-address.js';
import {
  askOtherTabs,
  createClient,
  createSession,
  forgetCredential,
  keepCredential,
  keptCredential,
  replyToOtherTabs,
  type Session,
  SessionContext,
  tellEnded,
} from './shell/session.js';
import { SignIn } from './shell/sign-in.js';
import { MessagePanel, PageFailure } from './states/panels.js';
import { readView } from './view/address.js';
import '@fontsource-variable/inter/wght.css';
import './styles/base.css';
import './styles/page.css';
import './styles/controls.css';
import './styles/chart.css';
import './styles/table.css';
import './styles/sheets.css';

const shownAccount = () => readView(location.search).account;

function App() {
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
    return replyToOtherTabs({ credential, account: shownAccount, onEnded: session.end });
  }, [session, credential]);
  if (isAsking) return null;
  if (session) return <SignedIn session={session} />;
  const enter = (entered: string) => {
    keepCredential(entered);
    setEndedBecause(undefined);
    setCredential(entered);
  };
  return <SignIn endedBecause={endedBecause} onSignedIn={enter} />;
}

/** Without header and sign-in, with a key that the page around it gives. */
function EmbeddedApp() {
  const [key] = useState(() => new ParentKey());
  const [isRefused, setRefused] = useState(false);
  useEffect(() => key.listen(() => setRefused(false)), [key]);
  const session = useMemo(() => {
    if (isRefused) return undefined;
    const { current: getCredential, fetch } = key;
    const end = () => setRefused(true);
    return createSession(new MeterlineClient({ baseUrl: serviceAddress(), getCredential, fetch, retries: 0 }), { end });
  }, [key, isRefused]);
  if (session) return <SignedIn session={session} />;
  return (
    <main className="page">
      <MessagePanel title="This view has expired">
        <p>Reload the page that shows it.</p>
      </MessagePanel>
    </main>
  );
}

function SignedIn({ session }: { readonly session: Session }) {
  useEffect(() => () => session.over.abort(), [session]);
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

applyTheme();
const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(
  <ErrorBoundary FallbackComponent={PageFailure}>{isEmbedded ? <EmbeddedApp /> : <App />}</ErrorBoundary>,
);
