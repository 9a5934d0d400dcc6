/** The page after signing in: its header, and the view of one account. */
import type { EpochMs } from '@meterline/catalog';
import { useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import { AccountView } from '../account/account-view.js';
import { Picker } from '../controls/picker.js';
import { useAccounts } from '../metrics/queries.js';
import { currentSecond } from '../period/period.js';
import { clockText } from '../period/period-text.js';
import { MessagePanel, OfflineBanner, ProblemPanel } from '../states/panels.js';
import { navigate, replaceView, useView } from '../view/address.js';
import { DEFAULT_VIEW } from '../view/view.js';
import { Brand, ThemeSwitch } from './header.js';
import { useSession } from './session.js';

/** A page that was hidden for so long reads everything again when it becomes visible. */
const STALE_MS = 5 * 60_000;
/** Between two readings of a view that refreshes by itself. */
const LIVE_MS = 60_000;

export function Explorer() {
  const { signOut } = useSession();
  const view = useView();
  const { now, refresh } = useNow(view.isLive);
  const accounts = useAccounts();
  const account = view.account ?? accounts.data?.[0]?.id;

  useEffect(() => {
    if (view.account === undefined && account !== undefined) replaceView({ ...view, account });
  }, [view, account]);
  useEffect(() => {
    document.title = account ? `${account} · Meterline` : 'Meterline';
  }, [account]);

  return (
    <>
      <header className="top">
        <Brand />
        <Picker<string | undefined>
          label="Account"
          shown={account ?? '…'}
          choices={(accounts.data ?? []).map(({ id, name, role }) => ({
            value: id,
            label: name === id ? id : `${name} (${id})`,
            hint: role,
          }))}
          chosen={account}
          onChoose={(chosen) => chosen && navigate({ ...DEFAULT_VIEW, period: view.period, account: chosen })}
          placeholder={(accounts.data?.length ?? 0) > 8 ? 'Find an account' : undefined}
          isLoading={accounts.isPending}
        />
        <div className="top-end">
          <button type="button" className="quiet" onClick={refresh}>
            Refresh<span className="refreshed">, as of {clockText(now)} UTC</span>
          </button>
          <ThemeSwitch />
          <button type="button" className="quiet" onClick={signOut}>
            Sign out
          </button>
        </div>
      </header>
      <OfflineBanner />
      <main className="page">
        <h1 className="sr-only">Cost and usage of {account ?? 'your accounts'}</h1>
        {account !== undefined && (
          <AccountView
            // A change of the account discards all state of the one before.
            key={account}
            account={account}
            role={accounts.data?.find(({ id }) => id === account)?.role}
            {...{ view, now, refresh }}
          />
        )}
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

/**
 * The instant that the screen is as of. Every question of the screen ends there, and it stays the same until a refresh, so
 * that all figures are of one moment and answers can be cached.
 */
function useNow(isLive: boolean): { now: EpochMs; refresh: () => void } {
  const { openedAt } = useSession();
  const queries = useQueryClient();
  const [now, setNow] = useState(openedAt);
  const refresh = useCallback(() => {
    setNow(currentSecond());
    void queries.invalidateQueries();
  }, [queries]);
  useEffect(() => {
    const seen = () => {
      if (document.visibilityState === 'visible' && Date.now() - now > (isLive ? LIVE_MS : STALE_MS)) refresh();
    };
    document.addEventListener('visibilitychange', seen);
    // A page that nobody sees asks nothing.
    const timer = isLive ? setInterval(seen, LIVE_MS / 12) : undefined;
    return () => {
      document.removeEventListener('visibilitychange', seen);
      clearInterval(timer);
    };
  }, [now, isLive, refresh]);
  return { now, refresh };
}
