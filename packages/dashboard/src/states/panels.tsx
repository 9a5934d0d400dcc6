/** Renders messages, errors, retry countdowns, skeletons and empty states. */
import { type EpochMs, parseTimestamp, plusMonths } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import { onlineManager, type Query, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useCallback, useEffect, useState, useSyncExternalStore } from 'react';
import { CopyButton, PrimaryButton, TextButton } from '../controls/controls.js';
import { firstEvent, keyCommand, sendCommand } from '../export/snippets.js';
import { useAccounts, useCollectorUrl, useLastUse } from '../metrics/queries.js';
import { clockText, monthText, periodText } from '../period/period.js';
import { isEmbedded } from '../shell/embed-address.js';
import { ignoredParameter, navigate, readViewOf, replaceView } from '../view/address.js';
import { hasFilters, type View, withGroups } from '../view/view.js';
import { problemOf, retryDelay, waitingText, waitText } from './problem.js';

const SECOND_MS = 1_000;

interface MessagePanelProps {
  readonly title: string;
  readonly children: ReactNode;
}

export function MessagePanel({ title, children }: MessagePanelProps) {
  return (
    <section className="message">
      <h2>{title}</h2>
      {children}
    </section>
  );
}

interface ProblemPanelProps {
  readonly error: Error;
  readonly account: string;
  readonly onRetry: () => void;
}

export function ProblemPanel({ error, account, onRetry }: ProblemPanelProps) {
  const { title, text, canRetry, requestId } = problemOf(error, account);
  return (
    <div role="alert">
      <MessagePanel title={title}>
        <p>{text}</p>
        {canRetry && <PrimaryButton onClick={onRetry}>Try again</PrimaryButton>}
        {requestId && (
          <p className="hint">
            Request ID: <code>{requestId}</code>. Include it when you report this problem.
          </p>
        )}
      </MessagePanel>
    </div>
  );
}

export function ComparisonProblem({ error, account }: Pick<ProblemPanelProps, 'error' | 'account'>) {
  const queries = useQueryClient();
  const retry = () =>
    void queries.refetchQueries({ queryKey: ['metrics', account], predicate: ({ state }) => state.status === 'error' });
  return (
    <div className="banner" role="alert">
      <span>The previous period could not be loaded: {problemOf(error, account).text}</span>
      <TextButton onClick={retry}>Try again</TextButton>
    </div>
  );
}

/** Replaces the page after an exception during rendering. */
export function PageFailure({ error }: { readonly error: unknown }) {
  return (
    <main className="page" role="alert">
      <MessagePanel title="Something went wrong on this page">
        <p>
          Your data is not affected. Reload the page. If the error returns, open the{' '}
          <a href={location.pathname}>default view</a>. To report the problem, include this error, the address of the
          page, and the name and version of your browser:
        </p>
        <p>
          <code>{String(error)}</code>
        </p>
        <PrimaryButton onClick={() => location.reload()}>Reload</PrimaryButton>
      </MessagePanel>
    </main>
  );
}

/** Selects queries that have failed and that the page retries. */
const RETRIED = { predicate: ({ state }: Query) => state.fetchFailureReason !== null && state.fetchStatus !== 'idle' };

/** Counts down to the next attempt of a failing query. @param asOf the time of the data on the screen; undefined if there is none */
export function RetryBanner({ asOf }: { readonly asOf?: EpochMs | undefined }) {
  const queries = useQueryClient();
  const cache = queries.getQueryCache();
  const subscribe = useCallback((listener: () => void) => cache.subscribe(listener), [cache]);
  const failing = useSyncExternalStore(subscribe, () => cache.findAll(RETRIED)[0]?.state);
  const { fetchFailureReason: reason = null, fetchFailureCount: failures = 0 } = failing ?? {};
  const [secondsLeft, setSecondsLeft] = useState(0);
  const retryNow = async () => {
    const waiting = cache.findAll(RETRIED);
    const filter = { predicate: (query: Query) => waiting.includes(query) };
    // A waiting query without data ignores refetchQueries, so cancel the query first.
    await queries.cancelQueries(filter);
    await queries.refetchQueries(filter);
  };
  useEffect(() => {
    if (!reason) return;
    const until = performance.now() + retryDelay(failures - 1, reason);
    const tick = () => setSecondsLeft(Math.max(0, Math.ceil((until - performance.now()) / SECOND_MS)));
    tick();
    const timer = setInterval(tick, SECOND_MS / 4);
    return () => clearInterval(timer);
  }, [reason, failures]);
  if (!reason) return null;
  return (
    <div className="banner" role="status">
      <span>
        {waitingText(reason)} {asOf !== undefined && `Showing data as of ${clockText(asOf)} UTC. `}
        {secondsLeft > 0 ? `Retrying ${waitText(secondsLeft)}.` : 'Retrying…'}
      </span>
      <TextButton onClick={() => void retryNow()}>Retry now</TextButton>
    </div>
  );
}

/** Shown while the browser is offline. Pending requests continue when the connection returns. */
export function OfflineBanner() {
  const online = useSyncExternalStore(
    (listener) => onlineManager.subscribe(listener),
    () => onlineManager.isOnline(),
  );
  if (online) return null;
  return (
    <div className="banner" role="status">
      You are offline. The page keeps its last data and updates when the connection returns.
    </div>
  );
}

/** Names a parameter of the address that the page does not know. A change of the view removes the parameter. Not for customers. */
export function LinkBanner({ view }: { readonly view: View }) {
  const ignored = ignoredParameter(location.search);
  if (ignored === undefined || isEmbedded()) return null;
  const period = ignored.startsWith('period=') ? ` The period is ${periodText(view.period)}.` : '';
  return (
    <div className="banner" role="status">
      <span>
        This page does not know “{ignored.slice(0, 60)}” in the link, and ignores it.{period}
      </span>
      <TextButton onClick={() => replaceView(view)}>Dismiss</TextButton>
    </div>
  );
}

/** A placeholder with the size of the chart or the table, so that nothing moves when the data arrives. */
export function Skeleton({ of }: { readonly of: 'chart' | 'table' }) {
  return <div className={`${of}-skeleton`} aria-hidden="true" />;
}

interface EmptyStateProps {
  readonly account: string;
  readonly role: AccountResponse['role'] | undefined;
  readonly view: View;
  readonly now: EpochMs;
  readonly onRefresh: () => void;
}

/** Shown if no usage matches the filters, if the period has no usage, or if the account never had any usage. */
export function EmptyState({ account, role, view, now, onRefresh }: EmptyStateProps) {
  const filtered = hasFilters(view.filters);
  const { data: lastUse } = useLastUse(account, now, !filtered);
  const { data: accounts } = useAccounts();
  if (filtered) {
    return (
      <MessagePanel title="No usage matches these filters">
        <p>Clear the filters, or choose another period.</p>
        <PrimaryButton onClick={() => navigate(withGroups(view, { filters: {} }))}>Clear filters</PrimaryButton>
      </MessagePanel>
    );
  }
  if (lastUse === undefined) return <MessagePanel title="No usage in this period">{null}</MessagePanel>;
  if (lastUse === null && (isEmbedded() || account === ALL_ACCOUNTS))
    return <MessagePanel title="No usage yet">{null}</MessagePanel>;
  if (lastUse === null && accounts && !accounts.some(({ id }) => id === account)) {
    return (
      <MessagePanel title={`There is no account ${account} yet`}>
        <p>
          An account begins with its first event, its first key, or a name (<code>PUT /v0/accounts/…</code>). Check its
          ID, or choose another account above.
        </p>
        <PrimaryButton onClick={() => navigate(readViewOf(ALL_ACCOUNTS, ''))}>Show all accounts</PrimaryButton>
      </MessagePanel>
    );
  }
  if (lastUse === null) return <FirstEvent {...{ account, role, onRefresh }} />;
  const month = parseTimestamp(lastUse) ?? 0;
  const to = { from: month, to: plusMonths(month, 1) };
  return (
    <MessagePanel title="No usage in this period">
      <p>The most recent usage was in {monthText(month)}.</p>
      <PrimaryButton onClick={() => navigate(withGroups(view, { period: to }))}>Show {monthText(month)}</PrimaryButton>
    </MessagePanel>
  );
}

/** Interval at which the page of an unused account checks for the first event. */
const CHECK_MS = 3_000;

function FirstEvent({ account, role, onRefresh }: Pick<EmptyStateProps, 'account' | 'role' | 'onRefresh'>) {
  const [event] = useState(() => firstEvent(account, new Date()));
  const collector = useCollectorUrl();
  const url = collector.data ?? undefined;
  const queries = useQueryClient();
  useEffect(() => {
    // Do not interrupt a pending query, because it may be waiting for the `Retry-After` of the service.
    const isFetching = () => queries.isFetching({ queryKey: ['metrics'] }) > 0;
    const check = () => document.visibilityState === 'visible' && !isFetching() && onRefresh();
    const timer = setInterval(check, CHECK_MS);
    return () => clearInterval(timer);
  }, [onRefresh, queries]);
  return (
    <MessagePanel title="Send your first event">
      <p>
        <strong>{account}</strong> has no usage yet. Sending events requires a key with the emitter role.{' '}
        {role === 'member'
          ? 'Ask the operators of your platform to send an event, and show them this page.'
          : 'Create one in the folder where Meterline runs:'}
      </p>
      {role !== 'member' && <Command text={keyCommand(account)} />}
      {collector.isFetched && (
        <>
          <p>
            Set <code>KEY</code> to the key
            {url === undefined && (
              <>
                {' '}
                and <code>COLLECTOR</code> to the address of Meterline’s collector
              </>
            )}
            , then send an event:
          </p>
          <Command text={sendCommand(event, url)} />
          <p>
            In a Node program, use the package <code>@meterline/emitter</code>. It gives every event a new ID and
            retries until the event is accepted.
          </p>
        </>
      )}
      <p role="status">This page checks for the first event every {CHECK_MS / 1_000} seconds.</p>
    </MessagePanel>
  );
}

function Command({ text }: { readonly text: string }) {
  return (
    <div className="command">
      <pre>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label="Copy command" className="control" />
    </div>
  );
}
