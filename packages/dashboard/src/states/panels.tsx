/** What the page shows in place of figures: messages, problems, the wait for another attempt, skeletons, and how to send a first event. */
import { type EpochMs, parseTimestamp, plusMonths } from '@meterline/catalog/plain';
import { type AccountResponse, ALL_ACCOUNTS } from '@meterline/client';
import { onlineManager, type Query, useQueryClient } from '@tanstack/react-query';
import { type ReactNode, useEffect, useState, useSyncExternalStore } from 'react';
import { CopyButton, Primary, Quiet } from '../controls/controls.js';
import { firstEvent, keyCommand, producerCode, sendCommand } from '../export/snippets.js';
import { useCollectorUrl, useLastUse } from '../metrics/queries.js';
import { clockText, monthText } from '../period/period.js';
import { isEmbedded } from '../shell/embed-address.js';
import { navigate } from '../view/address.js';
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
        {canRetry && <Primary onClick={onRetry}>Try again</Primary>}
        {requestId && (
          <p className="hint">
            Request <code>{requestId}</code>: quote it when you ask for help.
          </p>
        )}
      </MessagePanel>
    </div>
  );
}

/** In place of a page whose rendering failed. */
export function PageFailure({ error }: { readonly error: unknown }) {
  return (
    <main className="page" role="alert">
      <MessagePanel title="This page has failed">
        <p>
          Your data is not affected. Reload the page. If it fails again, the{' '}
          <a href={location.pathname}>default view</a> may work. Please report this error, the address of the page, and
          your browser’s name and version:
        </p>
        <p>
          <code>{String(error)}</code>
        </p>
        <Primary onClick={() => location.reload()}>Reload</Primary>
      </MessagePanel>
    </main>
  );
}

/** What of a query the page waits for, while the service is away or busy. */
export interface Awaited {
  readonly failureReason: Error | null;
  /** Failed attempts so far. */
  readonly failureCount: number;
  readonly error: Error | null;
}

/** The page tries again by itself, and says when. @param asOf the time of the figures on the screen; undefined: there are none */
export function Waiting({ of, asOf }: { readonly of: readonly Awaited[]; readonly asOf?: EpochMs | undefined }) {
  const failing = of.find(({ failureReason, error }) => failureReason && !error);
  const { failureReason: reason = null, failureCount = 0 } = failing ?? {};
  const [left, setLeft] = useState(0);
  const queries = useQueryClient();
  /** A query that waits without data ignores a refetch, so it is ended first. */
  const tryNow = async () => {
    const waiting = queries.getQueryCache().findAll({
      predicate: ({ state }) => state.fetchFailureReason !== null && state.fetchStatus !== 'idle',
    });
    const those = { predicate: (query: Query) => waiting.includes(query) };
    await queries.cancelQueries(those);
    await queries.refetchQueries(those);
  };
  useEffect(() => {
    if (!reason) return;
    const until = performance.now() + retryDelay(failureCount - 1, reason);
    const tick = () => setLeft(Math.max(0, Math.ceil((until - performance.now()) / SECOND_MS)));
    tick();
    const timer = setInterval(tick, SECOND_MS / 4);
    return () => clearInterval(timer);
  }, [reason, failureCount]);
  if (!failing || !reason) return null;
  return (
    <div className="banner" role="status">
      <span>
        {waitingText(reason)} {asOf !== undefined && `The figures are of ${clockText(asOf)} UTC. `}
        {left > 0 ? `Trying again ${waitText(left)}.` : 'Trying again…'}
      </span>
      <Quiet onClick={() => void tryNow()}>Try now</Quiet>
    </div>
  );
}

/** Shown while the browser has no network. Afterwards waiting requests continue by themselves. */
export function OfflineBanner() {
  const online = useSyncExternalStore(
    (listener) => onlineManager.subscribe(listener),
    () => onlineManager.isOnline(),
  );
  if (online) return null;
  return (
    <div className="banner" role="status">
      You are offline. The figures stay; the page continues by itself when the connection is back.
    </div>
  );
}

/** Bars or lines in place of what is on its way: as large as the chart, so that nothing moves when it comes. */
export function Skeleton({ of }: { readonly of: 'chart' | 'table' }) {
  return <div className={`${of}-skeleton`} aria-hidden="true" />;
}

interface EmptyProps {
  readonly account: string;
  readonly role: AccountResponse['role'] | undefined;
  readonly view: View;
  readonly now: EpochMs;
  readonly onRefresh: () => void;
}

/** Nothing was used: under these filters, in this period, or ever. */
export function Empty({ account, role, view, now, onRefresh }: EmptyProps) {
  const filtered = hasFilters(view.filters);
  const { data: lastUse } = useLastUse(account, now, !filtered);
  if (filtered) {
    return (
      <MessagePanel title="Nothing matches these filters">
        <p>In this period nothing was used that matches all of them.</p>
        <Primary onClick={() => navigate(withGroups(view, { filters: {} }))}>Clear filters</Primary>
      </MessagePanel>
    );
  }
  if (lastUse === undefined) return <MessagePanel title="No usage in this period">{null}</MessagePanel>;
  if (lastUse === null && (isEmbedded || account === ALL_ACCOUNTS))
    return <MessagePanel title="No usage yet">{null}</MessagePanel>;
  if (lastUse === null) return <FirstEvent {...{ account, role, onRefresh }} />;
  const month = parseTimestamp(lastUse) ?? 0;
  const to = { from: month, to: plusMonths(month, 1) };
  return (
    <MessagePanel title="No usage in this period">
      <p>The last usage was in {monthText(month)}.</p>
      <Primary onClick={() => navigate(withGroups(view, { period: to }))}>Show {monthText(month)}</Primary>
    </MessagePanel>
  );
}

/** How often the page of an account that was never used looks for the first event. */
const LOOK_MS = 3_000;

function FirstEvent({ account, role, onRefresh }: Pick<EmptyProps, 'account' | 'role' | 'onRefresh'>) {
  const [event] = useState(() => firstEvent(account, new Date()));
  const collector = useCollectorUrl();
  const url = collector.data ?? undefined;
  const queries = useQueryClient();
  useEffect(() => {
    // A query that is under way, or waits as long as the service asks, is not ended.
    const isAsking = () => queries.isFetching({ queryKey: ['metrics'] }) > 0;
    const look = () => document.visibilityState === 'visible' && !isAsking() && onRefresh();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [onRefresh, queries]);
  return (
    <MessagePanel title="Send the first event">
      <p>
        <strong>{account}</strong> has no usage yet. Events are sent with a key of the role emitter, which can do
        nothing else; yours cannot send.{' '}
        {role === 'member'
          ? 'The people who run the platform have such keys; show them this page.'
          : 'This makes one, in the folder where Meterline runs:'}
      </p>
      {role !== 'member' && <Command text={keyCommand(account)} label="command" />}
      {collector.isFetched && (
        <>
          <p>
            This sends an event, with such a key in <code>KEY</code>
            {url === undefined && (
              <>
                {' '}
                and the address of Meterline’s collector in <code>COLLECTOR</code>
              </>
            )}
            :
          </p>
          <Command text={sendCommand(event, url)} label="command" />
          <p>
            A runtime in Node records its usage with the emitter, which gives every event a new id and sends it until it
            is accepted:
          </p>
          <Command text={producerCode(event, url)} label="code" />
        </>
      )}
      <p role="status">This page looks for the first event every {LOOK_MS / 1_000} seconds.</p>
    </MessagePanel>
  );
}

function Command({ text, label }: { readonly text: string; readonly label: string }) {
  return (
    <div className="command">
      <pre>
        <code>{text}</code>
      </pre>
      <CopyButton text={text} label={`Copy ${label}`} className="control" />
    </div>
  );
}
