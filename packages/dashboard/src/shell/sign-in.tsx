import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { ErrorText, Field, Primary } from '../controls/controls.js';
import { signInProblem } from '../states/problem.js';
import { Brand, ThemeSwitch } from './header.js';
import { createClient } from './session.js';

interface SignInProps {
  /** Why the API did not accept the key or token of the last session any more; undefined: there was none, or it was signed out. */
  readonly endedBecause: string | undefined;
  readonly onSignedIn: (credential: string) => void;
}

const READS_NO_USAGE =
  'This key has the role provisioner: it manages accounts and their keys, and reads no usage. Use one with the role admin, member or operator.';

export function SignIn({ endedBecause, onSignedIn }: SignInProps) {
  const [problem, setProblem] = useState<string>();
  const [checking, setChecking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const [hintId, problemId] = [useId(), useId()];

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const credential = input.current?.value.trim().replace(/^Bearer +/i, '') ?? '';
    if (credential === '') {
      setProblem('Paste an API key or a token.');
      return;
    }
    setChecking(true);
    setProblem(undefined);
    try {
      const accounts = await createClient(credential).accounts();
      if (accounts.length === 0 || accounts.some(({ role }) => role !== 'provisioner')) return onSignedIn(credential);
      setProblem(READS_NO_USAGE);
    } catch (error) {
      setProblem(signInProblem(error));
    }
    setChecking(false);
    input.current?.focus();
  };

  return (
    <div className="sign-in">
      <header>
        <ThemeSwitch />
      </header>
      <main className="sign-in-card">
        <Brand />
        <h1>See what your account used, and what it cost</h1>
        {endedBecause !== undefined && (
          <p className="notice" role="status">
            {endedBecause} Sign in again; the view that you had open is kept.
          </p>
        )}
        <form onSubmit={submit} noValidate>
          <Field
            label="API key or access token"
            ref={input}
            type="password"
            autoComplete="off"
            spellCheck={false}
            placeholder="mlk_…"
            aria-describedby={problem ? `${problemId} ${hintId}` : hintId}
            aria-invalid={problem !== undefined}
          />
          <ErrorText id={problemId}>{problem}</ErrorText>
          <Primary type="submit" disabled={checking}>
            {checking ? 'Checking…' : 'Sign in'}
          </Primary>
          <p className="hint" id={hintId}>
            It is sent to this service only, shared with tabs of this page that you open, and forgotten when the last
            one is closed.
          </p>
        </form>
        <p className="hint sign-in-help">
          No key yet? An operator creates one with <code>meterline keys create --account … --role member</code>. The
          same figures come from <a href="docs">the API</a>.
        </p>
      </main>
    </div>
  );
}
