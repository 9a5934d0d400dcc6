import { MeterlineConnectionError, MeterlineError } from '@meterline/client';
import { type FormEvent, useId, useRef, useState } from 'react';
import { Brand } from '../controls/brand.js';
import { ThemeSwitch } from '../theme/theme-switch.js';
import type { Ending } from './credential.js';
import { createClient } from './session.js';

interface SignInProps {
  readonly ending: Ending | undefined;
  readonly onSignedIn: (credential: string) => void;
}

export function SignIn({ ending, onSignedIn }: SignInProps) {
  const [fault, setFault] = useState<string>();
  const [checking, setChecking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const [inputId, hintId, faultId] = [useId(), useId(), useId()];

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const credential = input.current?.value.trim().replace(/^Bearer +/i, '') ?? '';
    if (credential === '') {
      setFault('Paste an API key or a token.');
      return;
    }
    setChecking(true);
    setFault(undefined);
    try {
      await createClient(credential).accounts();
      onSignedIn(credential);
    } catch (error) {
      setFault(faultText(error));
      setChecking(false);
      input.current?.focus();
    }
  };

  return (
    <div className="sign-in">
      <header className="sign-in-header">
        <ThemeSwitch />
      </header>
      <main className="sign-in-card">
        <Brand />
        <h1>See what your account used, and what it cost</h1>
        {ending && (
          <p className="notice" role="status">
            Your key or token is no longer valid: it was revoked, or it has expired. Sign in again; the view that you
            had open is kept.
          </p>
        )}
        <form onSubmit={submit} noValidate>
          <label htmlFor={inputId}>API key or access token</label>
          <input
            ref={input}
            id={inputId}
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="mlk_…"
            aria-describedby={fault ? `${faultId} ${hintId}` : hintId}
            aria-invalid={fault !== undefined}
          />
          {fault && (
            <p className="fault" id={faultId} role="alert">
              {fault}
            </p>
          )}
          <button type="submit" className="primary" disabled={checking}>
            {checking ? 'Checking…' : 'Sign in'}
          </button>
          <p className="hint" id={hintId}>
            It stays in this tab, is sent to this service only, and is forgotten when the tab is closed.
          </p>
        </form>
        <p className="hint sign-in-help">
          No key yet? An operator creates one with <code>npx meterline keys create --account … --role member</code>. The
          same figures come from <a href="/docs">the API</a>.
        </p>
      </main>
    </div>
  );
}

function faultText(error: unknown): string {
  if (error instanceof MeterlineError && error.status === 401) {
    return 'This key or token is unknown, revoked or expired. Check that all of it was copied.';
  }
  if (error instanceof MeterlineError)
    return `${error.message} (${error.status}, request ${error.requestId ?? 'unknown'})`;
  if (error instanceof MeterlineConnectionError)
    return 'The service cannot be reached. Check the connection and try again.';
  // No answer of the service, but a character that no header may carry.
  return 'This is not an API key or token: it has characters that neither of them has.';
}
