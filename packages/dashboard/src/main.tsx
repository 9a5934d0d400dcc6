/** Starts the page: first the sign-in form, then the explorer. An embedded page has only the explorer. */
import { CSPProvider } from '@base-ui/react/csp-provider';
import { MeterlineClient } from '@meterline/client';
import { QueryClientProvider } from '@tanstack/react-query';
import { type ReactNode, useEffect, useMemo, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { ErrorBoundary } from 'react-error-boundary';
import { setLocale } from './format/locale.js';
import { embedLocale, isEmbedded, takeEmbedKey } from './shell/embed-address.js';
import { Explorer } from './shell/explorer.js';
import { applyTheme } from './shell/header.js';
import { ParentKey } from './shell/parent-key.js';
import { serviceAddress } from './shell/service.js';
import {
  announceSignOut,
  createClient,
  createSession,
  removeCredential,
  requestCredential,
  type Session,
  SessionContext,
  shareCredential,
  storeCredential,
  storedCredential,
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
  const [credential, setCredential] = useState(storedCredential);
  const [isRequesting, setRequesting] = useState(credential === undefined);
  /** The reason why the API ended the last session, or undefined if the user signed out. */
  const [endReason, setEndReason] = useState<string>();
  useEffect(() => {
    if (!isRequesting) return;
    void requestCredential(shownAccount()).then((received) => {
      if (received !== undefined) {
        storeCredential(received);
        setCredential(received);
      }
      setRequesting(false);
    });
  }, [isRequesting]);
  const session = useMemo(() => {
    if (credential === undefined) return undefined;
    const end = (reason?: string) => {
      removeCredential();
      setEndReason(reason);
      setCredential(undefined);
    };
    const signOut = () => {
      announceSignOut(credential);
      end();
    };
    return { ...createSession(createClient(credential), { end, signOut }), end };
  }, [credential]);
  useEffect(() => {
    if (!session || credential === undefined) return;
    return shareCredential({ credential, account: shownAccount, onSignOut: session.end });
  }, [session, credential]);
  if (isRequesting) return null;
  if (session) return <SignedIn session={session} />;
  const signIn = (entered: string) => {
    storeCredential(entered);
    setEndReason(undefined);
    setCredential(entered);
  };
  return <SignIn endReason={endReason} onSignedIn={signIn} />;
}

/** Renders the explorer without a header and without sign-in. The parent page provides the key. */
function EmbeddedApp({ parentKey }: { readonly parentKey: ParentKey }) {
  const [isExpired, setExpired] = useState(false);
  useEffect(() => parentKey.listen(() => setExpired(false)), [parentKey]);
  const session = useMemo(() => {
    if (isExpired) return undefined;
    const { current: getCredential, fetch } = parentKey;
    const end = () => setExpired(true);
    return createSession(new MeterlineClient({ baseUrl: serviceAddress(), getCredential, fetch, retries: 0 }), { end });
  }, [parentKey, isExpired]);
  if (session) return <SignedIn session={session} />;
  return (
    <main className="page">
      <MessagePanel title="This view has expired">
        <p>Reload the surrounding page to continue.</p>
      </MessagePanel>
    </main>
  );
}

function SignedIn({ session }: { readonly session: Session }) {
  useEffect(() => () => session.lifetime.abort(), [session]);
  return (
    <SessionContext value={session}>
      <QueryClientProvider client={session.queries}>
        {/* The content security policy forbids style elements. The page's own style sheets contain these rules instead. */}
        <CSPProvider disableStyleElements>
          <Explorer />
        </CSPProvider>
      </QueryClientProvider>
    </SessionContext>
  );
}

function start(): ReactNode {
  applyTheme();
  if (!isEmbedded()) return <App />;
  setLocale(embedLocale());
  return <EmbeddedApp parentKey={new ParentKey(takeEmbedKey())} />;
}

const root = document.getElementById('root');
if (!root) throw new Error('index.html has no #root');
createRoot(root).render(<ErrorBoundary FallbackComponent={PageFailure}>{start()}</ErrorBoundary>);
