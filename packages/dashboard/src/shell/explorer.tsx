/** The page after signing in: its header, and the view of one account. */
import type { EpochMs } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import { type Query, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import { AccountView } from '../account/account-view.js';
import { Quiet } from '../controls/controls.js';
import { SearchSelect, Select } from '../controls/lists.js';
import { useAccounts } from '../metrics/queries.js';
import { clockText, currentSecond } from '../period/period.js';
import { MessagePanel, OfflineBanner, ProblemPanel, Waiting } from '../states/panels.js';
import { isOnFirstPage } from '../table/rows.js';
import { navigate, readViewOf, replaceView, useView } from '../view/address.js';
import { accountName, DEFAULT_VIEW, type View } from '../view/view.js';
import { isEmbedded } from './embed-address.js';
import { Brand, ThemeSwitch } from './header.js';
import { SHARED_SECONDS, useSession } from './session.js';

/** A page that was hidden for so long reads everything again when it becomes visible. */
const STALE_MS = 5 * 60_000;
/** Between two readings of a view that refreshes by itself. */
const LIVE_MS = 60_000;

/** The most accounts that are seen at once; in a longer list they are searched. */
const MOST_UNSEARCHED = 8;

export function Explorer() {
  const { signOut } = useSession();
  const view = useView();
  const { now, refresh } = useNow(view);
  /** The time of the figures on the screen: older than `now` while the service is away. */
  const [shownAsOf, setShownAsOf] = useState(now);
  const accounts = useAccounts();
  const [first] = accounts.data ?? [];
  const account = view.account ?? (first?.role === 'operator' ? ALL_ACCOUNTS : first?.id);

  useEffect(() => {
    if (view.account !== undefined || account === undefined) return;
    replaceView(readViewOf(account, location.search));
  }, [view, account]);
  useEffect(() => {
    document.title = account ? `${accountName(account)} · Meterline` : 'Meterline';
  }, [account]);

  const choices = accountChoices(accounts.data ?? [], account);
  const onChange = (chosen: string) => {
    const groupBy = chosen === ALL_ACCOUNTS ? (['account'] as const) : DEFAULT_VIEW.groupBy;
    navigate({ ...DEFAULT_VIEW, period: view.period, account: chosen, groupBy });
  };
  return (
    <>
      {!isEmbedded && (
        <header className="top">
          <Brand />
          {choices.length > MOST_UNSEARCHED ? (
            <SearchSelect {...{ choices, onChange }} label="Account" value={account ?? '…'} />
          ) : (
            <Select {...{ choices, onChange }} label="Account" labelled="inside" value={account ?? '…'} />
          )}
          <div className="top-end">
            <Quiet onClick={() => refresh(0)}>
              Refresh
              <span className="refreshed">
                , as of {clockText(shownAsOf)} UTC{view.isLive && !isOnFirstPage(view) && ', paused'}
              </span>
            </Quiet>
            <ThemeSwitch />
            <Quiet onClick={signOut}>Sign out</Quiet>
          </div>
        </header>
      )}
      <main className="page">
        <OfflineBanner />
        <h1 className="sr-only">Cost and usage of {account === undefined ? 'your accounts' : accountName(account)}</h1>
        {account !== undefined && (
          <AccountView
            // A change of the account discards all state of the one before.
            key={account}
            account={account}
            role={roleIn(accounts.data ?? [], account)}
            {...{ view, now, refresh }}
            onShown={setShownAsOf}
          />
        )}
        {account === undefined && <Waiting of={[accounts]} />}
        {account === undefined && accounts.error && (
          <ProblemPanel error={accounts.error} account="your accounts" onRetry={() => void accounts.refetch()} />
        )}
        {accounts.data?.length === 0 && (
          <MessagePanel title="You belong to no account">
            <p>Your token is valid, but names no account. Ask the person who manages the accounts to add you to one.</p>
          </MessagePanel>
        )}
      </main>
    </>
  );
}

function accountChoices(accounts: readonly AccountResponse[], shown: string | undefined) {
  const choices = accounts.map(({ id, name, role }) => {
    return { value: id, label: name === id ? id : `${name} (${id})`, hint: role };
  });
  if (accounts.length < 2 && shown !== ALL_ACCOUNTS) return choices;
  return [{ value: ALL_ACCOUNTS, label: accountName(ALL_ACCOUNTS), hint: 'together' }, ...choices];
}

/** The caller's role: an operator's is the same everywhere; a member of one account sees all together as a member. Undefined: none or not known. */
function roleIn(accounts: readonly AccountResponse[], account: string): AccountResponse['role'] | undefined {
  const [first] = accounts;
  if (account !== ALL_ACCOUNTS && first?.role !== 'operator') return accounts.find(({ id }) => id === account)?.role;
  return accounts.find(({ role }) => role === 'member')?.role ?? first?.role;
}

/**
 * The instant that the screen is as of. Every query of the screen ends there, and it stays the same until a refresh, so
 * that all figures are of one moment and answers can be cached. The page refreshes by itself only what is on the API's first page.
 */
function useNow(view: View): { now: EpochMs; refresh: (maxAgeSeconds?: number) => void } {
  const session = useSession();
  const queries = useQueryClient();
  const [{ now, refreshes }, setShown] = useState({ now: session.openedAt, refreshes: 0 });
  const isRefreshing = isOnFirstPage(view);
  const staleMs = view.isLive ? LIVE_MS : STALE_MS;
  const refresh = useCallback(
    (maxAgeSeconds = SHARED_SECONDS) => {
      session.maxAgeSeconds = maxAgeSeconds;
      setShown((shown) => ({ now: currentSecond(), refreshes: shown.refreshes + 1 }));
    },
    [session],
  );
  // Once the screen asks as of the new instant: what it asks already is not asked twice. The values of an open list stay as they are until it
  // is opened again.
  useEffect(() => {
    const predicate = (query: Query) => query.queryKey[0] !== 'values' || !query.isActive();
    if (refreshes > 0) void queries.invalidateQueries({ predicate }, { cancelRefetch: false });
  }, [queries, refreshes]);
  useEffect(() => {
    const seen = () => {
      if (isRefreshing && document.visibilityState === 'visible' && Date.now() - now > staleMs) refresh();
    };
    document.addEventListener('visibilitychange', seen);
    // A page that nobody sees asks nothing.
    const timer = view.isLive ? setInterval(seen, LIVE_MS / 12) : undefined;
    return () => {
      document.removeEventListener('visibilitychange', seen);
      clearInterval(timer);
    };
  }, [now, view.isLive, staleMs, isRefreshing, refresh]);
  return { now, refresh };
}
