/** Renders the sign-in form, and checks the key or token before it is stored. */
import { type FormEvent, useEffect, useId, useRef, useState } from 'react';
import { ErrorText, Field, PrimaryButton } from '../controls/controls.js';
import { signInProblem } from '../states/problem.js';
import { Brand, ThemeSwitch } from './header.js';
import { createClient } from './session.js';

interface SignInProps {
  /** The reason why the API rejected the credential of the last session, or undefined on a first visit and after a sign-out. */
  readonly endReason: string | undefined;
  readonly onSignedIn: (credential: string) => void;
}

const CANNOT_READ_USAGE =
  'This key has the provisioner role, which manages accounts and keys but cannot read usage. Sign in with an admin, member or operator key.';

export function SignIn({ endReason, onSignedIn }: SignInProps) {
  const [problem, setProblem] = useState<string>();
  const [isChecking, setChecking] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useEffect(() => input.current?.focus(), []);
  const [hintId, problemId] = [useId(), useId()];

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const credential = input.current?.value.trim().replace(/^Bearer +/i, '') ?? '';
    if (credential === '') {
      setProblem('Enter an API key or access token.');
      return;
    }
    setChecking(true);
    setProblem(undefined);
    try {
      const accounts = await createClient(credential).accounts();
      if (accounts.length === 0 || accounts.some(({ role }) => role !== 'provisioner')) return onSignedIn(credential);
      setProblem(CANNOT_READ_USAGE);
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
        <h1>See your usage and costs</h1>
        {endReason !== undefined && (
          <p className="notice" role="status">
            {endReason} Sign in again to return to your view.
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
          <PrimaryButton type="submit" disabled={isChecking}>
            {isChecking ? 'Checking…' : 'Sign in'}
          </PrimaryButton>
          <p className="hint" id={hintId}>
            Your key is sent only to this service. It is shared between tabs and forgotten when you close the last one.
          </p>
        </form>
        <p className="hint sign-in-help">
          Don’t have a key? An operator can create one with <code>meterline keys create --account … --role member</code>
          . The same data is available from <a href="docs">the API</a>.
        </p>
      </main>
    </div>
  );
}
