/** Renders the page after sign-in: the header and the view of one account. */
import type { EpochMs } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import { type Query, useQueryClient } from '@tanstack/react-query';
import { useCallback, useEffect, useState } from 'react';
import { AccountView } from '../account/account-view.js';
import { TextButton } from '../controls/controls.js';
import { SearchSelect, Select } from '../controls/lists.js';
import { useAccountNames, useAccounts, useBillingDimensions } from '../metrics/queries.js';
import { clockText, currentSecond } from '../period/period.js';
import { LinkBanner, MessagePanel, OfflineBanner, ProblemPanel, RetryBanner } from '../states/panels.js';
import { isOnFirstPage } from '../table/rows.js';
import { addAccount, navigate, readViewOf, useView, writeView } from '../view/address.js';
import { type AccountNames, accountLabel, DEFAULT_VIEW, type View } from '../view/view.js';
import { isEmbedded } from './embed-address.js';
import { Brand, PageMenu, ThemeSwitch } from './header.js';
import { CACHE_SECONDS, useSession } from './session.js';

/** A page that becomes visible refreshes if its data is older than this. */
const STALE_MS = 5 * 60_000;
const LIVE_MS = 60_000;

/** A list with more accounts has a search field. */
const MAX_UNSEARCHED_ACCOUNTS = 8;

export function Explorer() {
  const view = useView();
  const { now, refresh } = useNow(view);
  /** The time of the data on the screen. It is earlier than `now` while the service is unavailable. */
  const [shownAsOf, setShownAsOf] = useState(now);
  const accounts = useAccounts();
  const names = useAccountNames();
  const [first] = accounts.data ?? [];
  const account = view.account ?? (isOperator(accounts.data) ? ALL_ACCOUNTS : first?.id);

  // The list of billing dimensions contains those that the platform has added. They are the same for all accounts, so read any list.
  useBillingDimensions(account === ALL_ACCOUNTS ? first?.id : account);

  useEffect(() => {
    if (view.account === undefined && account !== undefined) addAccount(account);
  }, [view, account]);
  useEffect(() => {
    document.title = account ? `${accountLabel(account, names)} · Meterline` : 'Meterline';
  }, [account, names]);

  const choices = accountChoices(accounts.data ?? [], names, account);
  const onChange = (chosen: string) => {
    navigate(readViewOf(chosen, writeView({ ...DEFAULT_VIEW, period: view.period })));
  };
  return (
    <>
      {!isEmbedded() && (
        <header className="top">
          <Brand />
          {choices.length > MAX_UNSEARCHED_ACCOUNTS ? (
            <SearchSelect {...{ choices, onChange }} label="Account" value={account ?? '…'} />
          ) : (
            <Select {...{ choices, onChange }} label="Account" labelPosition="inside" value={account ?? '…'} />
          )}
          <div className="top-end">
            <TextButton onClick={() => refresh(0)}>
              Refresh
              <span className="refreshed">
                , as of {clockText(shownAsOf)} UTC{view.isLive && !isOnFirstPage(view) && ' (auto-refresh paused)'}
              </span>
            </TextButton>
            <ThemeSwitch />
            <PageMenu />
          </div>
        </header>
      )}
      <main className="page">
        <OfflineBanner />
        <LinkBanner view={view} />
        <h1 className="sr-only">
          Cost and usage: {account === undefined ? 'your accounts' : accountLabel(account, names)}
        </h1>
        {account !== undefined && (
          <AccountView
            // With this key, React discards the state of the previous account.
            key={account}
            account={account}
            role={roleIn(accounts.data ?? [], account)}
            {...{ view, now, refresh }}
            onShown={setShownAsOf}
          />
        )}
        {account === undefined && <RetryBanner />}
        {account === undefined && accounts.error && (
          <ProblemPanel error={accounts.error} account="your accounts" onRetry={() => void accounts.refetch()} />
        )}
        {accounts.data?.length === 0 && (
          <MessagePanel title="You don’t have access to any account">
            <p>Your token is valid but is not linked to an account. Ask your administrator to add you to an account.</p>
          </MessagePanel>
        )}
      </main>
    </>
  );
}

function accountChoices(accounts: readonly AccountResponse[], names: AccountNames, shown: string | undefined) {
  const choices = accounts.map(({ id, role }) => ({ value: id, label: accountLabel(id, names), hint: role }));
  if (accounts.length < 2 && shown !== ALL_ACCOUNTS) return choices;
  return [{ value: ALL_ACCOUNTS, label: accountLabel(ALL_ACCOUNTS), hint: 'combined' }, ...choices];
}

function isOperator(accounts: readonly AccountResponse[] = []): boolean {
  return accounts.some(({ role }) => role === 'operator');
}

/**
 * Returns the user's role in an account, or undefined if the role is unknown. An operator may also be an admin of some accounts. If the view
 * shows all accounts together, a user who is a member of any account counts as a member.
 */
function roleIn(accounts: readonly AccountResponse[], account: string): AccountResponse['role'] | undefined {
  const own = accounts.find(({ id }) => id === account)?.role;
  if (isOperator(accounts)) return own === 'admin' ? own : 'operator';
  if (account !== ALL_ACCOUNTS) return own;
  return accounts.find(({ role }) => role === 'member')?.role ?? accounts[0]?.role;
}

/**
 * Returns a time and a function to refresh it. Every query ends at this time, and only a refresh changes the time. All figures on the
 * screen therefore match, and the service can cache its responses.
 * The automatic refresh skips views that need more than the first page of the API, because the service would store their whole result each
 * time.
 */
function useNow(view: View): { now: EpochMs; refresh: (maxAgeSeconds?: number) => void } {
  const session = useSession();
  const queries = useQueryClient();
  const [{ now, refreshes }, setShown] = useState({ now: session.openedAt, refreshes: 0 });
  const isRefreshing = isOnFirstPage(view);
  const staleMs = view.isLive ? LIVE_MS : STALE_MS;
  const refresh = useCallback(
    (maxAgeSeconds = CACHE_SECONDS) => {
      session.maxAgeSeconds = maxAgeSeconds;
      setShown((shown) => ({ now: currentSecond(), refreshes: shown.refreshes + 1 }));
    },
    [session],
  );
  // Runs after the screen has started the queries for the new time. `cancelRefetch: false` keeps these queries from being sent twice. An
  // open list of filter values keeps its content until the user opens it again.
  useEffect(() => {
    const predicate = (query: Query) => query.queryKey[0] !== 'values' || !query.isActive();
    if (refreshes > 0) void queries.invalidateQueries({ predicate }, { cancelRefetch: false });
  }, [queries, refreshes]);
  useEffect(() => {
    const refreshIfStale = () => {
      if (isRefreshing && document.visibilityState === 'visible' && Date.now() - now > staleMs) refresh();
    };
    document.addEventListener('visibilitychange', refreshIfStale);
    const timer = view.isLive ? setInterval(refreshIfStale, LIVE_MS / 12) : undefined;
    return () => {
      document.removeEventListener('visibilitychange', refreshIfStale);
      clearInterval(timer);
    };
  }, [now, view.isLive, staleMs, isRefreshing, refresh]);
  return { now, refresh };
}
