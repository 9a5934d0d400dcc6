/** Renders the saved views of an account. Everyone opens views; admins also save and delete them. */
import type { MeterlineClient } from '@meterline/client';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { ErrorText, Field, Popover, PrimaryButton, TextButton } from '../controls/controls.js';
import { useSession } from '../shell/session.js';
import { navigate, readViewOf, writeView } from './address.js';
import type { View } from './view.js';

interface SavedViewsProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly view: View;
}

export function SavedViews({ account, isAdmin, view }: SavedViewsProps) {
  const { client } = useSession();
  const queryKey = ['views', account];
  const { data: views } = useQuery({ queryKey, queryFn: ({ signal }) => client.views.list(account, { signal }) });
  const query = writeView({ ...view, account: undefined, page: 1 });
  const open = views?.find((saved) => saved.query === query);
  if (!views || (views.length === 0 && !isAdmin)) return null;
  return (
    <Popover label={open ? 'View' : 'Saved views'} {...(open && { shown: open.name })}>
      {(close) => (
        <>
          <ul className="menu views">
            {views.map(({ name, query: saved }) => (
              <li key={name}>
                <button
                  type="button"
                  aria-pressed={name === open?.name}
                  onClick={() => {
                    navigate(readViewOf(account, saved));
                    close();
                  }}
                >
                  <span className="choice-label">{name}</span>
                </button>
                {isAdmin && <DeleteButton {...{ account, name }} />}
              </li>
            ))}
          </ul>
          {isAdmin && !open && <SaveForm {...{ account, query }} names={views.map(({ name }) => name)} />}
        </>
      )}
    </Popover>
  );
}

/** Changes views, and then reads them again. */
function useViewChange<Input>(account: string, act: (client: MeterlineClient, input: Input) => Promise<unknown>) {
  const { client } = useSession();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (input: Input) => act(client, input),
    retry: false,
    onSuccess: () => queries.invalidateQueries({ queryKey: ['views', account] }),
  });
}

function DeleteButton({ account, name }: { readonly account: string; readonly name: string }) {
  const [isAsking, setAsking] = useState(false);
  const { mutate, error, isPending } = useViewChange(account, (client) => client.views.delete(account, name));
  return (
    <>
      <TextButton
        aria-label={isAsking ? `Delete ${name} permanently` : `Delete ${name}`}
        disabled={isPending}
        onBlur={() => setAsking(false)}
        onClick={() => (isAsking ? mutate(undefined) : setAsking(true))}
      >
        {isAsking ? 'Delete permanently' : 'Delete'}
      </TextButton>
      <ErrorText>{error?.message}</ErrorText>
    </>
  );
}

interface SaveFormProps {
  readonly account: string;
  readonly query: string;
  readonly names: readonly string[];
}

function SaveForm({ account, query, names }: SaveFormProps) {
  const [name, setName] = useState('');
  const { mutate, error, isPending } = useViewChange(account, (client, text: string) =>
    client.views.save(account, text, query),
  );
  const isKnown = names.includes(name.trim());
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutate(name.trim());
  };
  return (
    <form className="form" onSubmit={submit}>
      <p className="form-title">Save this view</p>
      <Field label="Name" required maxLength={256} value={name} onChange={setName} />
      <PrimaryButton type="submit" disabled={isPending}>
        {isKnown ? 'Replace' : 'Save'}
      </PrimaryButton>
      {isKnown && <p className="hint">“{name.trim()}” exists. Replacing it changes it for everyone.</p>}
      <ErrorText>{error?.message}</ErrorText>
      <p className="hint">Everyone with access to the account can open it, or only admins if it shows workspaces.</p>
    </form>
  );
}
