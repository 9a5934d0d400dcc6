/** The explorer inside another page: without header and sign-in, with a key that the page around it gives. */
import { MeterlineClient } from '@meterline/client';
import { useEffect, useMemo, useState } from 'react';
import { createSession, SignedIn } from '../shell/signed-in.js';
import { MessagePanel } from '../states/panels.js';
import { givenKey } from './embedding.js';
import { ParentKey } from './parent-key.js';

export function EmbeddedApp() {
  const [key] = useState(() => new ParentKey(givenKey));
  const [isRefused, setRefused] = useState(false);
  useEffect(() => key.listen(() => setRefused(false)), [key]);
  const session = useMemo(() => {
    if (isRefused) return undefined;
    const { current: getCredential, fetch } = key;
    const end = () => setRefused(true);
    return createSession(new MeterlineClient({ baseUrl: location.origin, getCredential, fetch, retries: 0 }), { end });
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
