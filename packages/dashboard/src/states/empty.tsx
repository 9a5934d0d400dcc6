import { type EpochMs, parseTimestamp, plusMonths, type Role } from '@meterline/catalog';
import { ALL_ACCOUNTS } from '@meterline/client';
import { useEffect, useState } from 'react';
import { CopyButton } from '../controls/controls.js';
import { isEmbedded } from '../embed/embedding.js';
import { useCollectorUrl, useLastUse } from '../metrics/queries.js';
import { monthText } from '../period/period.js';
import { navigate } from '../view/address.js';
import { hasFilters, type View, withGroups } from '../view/view.js';
import { firstEvent, keyCommand, producerCode, sendCommand } from './first-event.js';
import { MessagePanel } from './panels.js';

interface FirstEventProps {
  readonly account: string;
  readonly role: Role | undefined;
  readonly onRefresh: () => void;
}

interface EmptyProps {
  readonly account: string;
  readonly role: Role | undefined;
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
        <button type="button" className="primary" onClick={() => navigate(withGroups(view, { filters: {} }))}>
          Clear filters
        </button>
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
      <button type="button" className="primary" onClick={() => navigate(withGroups(view, { period: to }))}>
        Show {monthText(month)}
      </button>
    </MessagePanel>
  );
}

/** So often the page of an account that was never used looks for the first event. */
const LOOK_MS = 3_000;

function FirstEvent({ account, role, onRefresh }: FirstEventProps) {
  const [event] = useState(() => firstEvent(account, new Date()));
  const collector = useCollectorUrl();
  const url = collector.data ?? undefined;
  useEffect(() => {
    const look = () => document.visibilityState === 'visible' && onRefresh();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [onRefresh]);
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
