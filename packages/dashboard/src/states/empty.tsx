import { type EpochMs, parseTimestamp } from '@meterline/catalog';
import { useState } from 'react';
import { useLastUse } from '../metrics/queries.js';
import { monthText, plusMonths } from '../period/period.js';
import { navigate } from '../view/address.js';
import { hasFilters, type View, withGroups } from '../view/view.js';
import { firstEvent, producerCode, sendCommand } from './first-event.js';
import { MessagePanel } from './panels.js';

interface EmptyProps {
  readonly account: string;
  readonly view: View;
  readonly now: EpochMs;
  readonly onRefresh: () => void;
}

/** Nothing was used: under these filters, in this period, or ever. */
export function Empty({ account, view, now, onRefresh }: EmptyProps) {
  const filtered = hasFilters(view.filters);
  const { data: lastUse } = useLastUse(account, now, !filtered);
  if (filtered) {
    return (
      <MessagePanel title="Nothing matches these filters">
        <p>In this period the account used nothing that matches all of them.</p>
        <button type="button" className="primary" onClick={() => navigate(withGroups(view, { filters: {} }))}>
          Clear filters
        </button>
      </MessagePanel>
    );
  }
  if (lastUse === undefined) return <MessagePanel title="No usage in this period">{null}</MessagePanel>;
  if (lastUse === null) return <FirstEvent account={account} onRefresh={onRefresh} />;
  const month = parseTimestamp(lastUse) ?? 0;
  const to = { from: month, to: plusMonths(month, 1) };
  return (
    <MessagePanel title="No usage in this period">
      <p>The last usage of this account was in {monthText(month)}.</p>
      <button type="button" className="primary" onClick={() => navigate(withGroups(view, { period: to }))}>
        Show {monthText(month)}
      </button>
    </MessagePanel>
  );
}

function FirstEvent({ account, onRefresh }: { readonly account: string; readonly onRefresh: () => void }) {
  const [event] = useState(() => firstEvent(account, new Date(), crypto.getRandomValues(new Uint8Array(16))));
  return (
    <MessagePanel title="Send the first event">
      <p>
        <strong>{account}</strong> has no usage yet. Runtimes put usage events on a queue. This command sends one by
        hand, from the folder where Meterline runs:
      </p>
      <Command text={sendCommand(event)} label="command" />
      <p>A runtime does the same from its own code:</p>
      <Command text={producerCode(event)} label="code" />
      <p>An event is shown here within a second.</p>
      <button type="button" className="primary" onClick={onRefresh}>
        Look again
      </button>
    </MessagePanel>
  );
}

function Command({ text, label }: { readonly text: string; readonly label: string }) {
  const [copied, setCopied] = useState(false);
  const copy = () => {
    // Browsers have a clipboard only over https or on localhost; elsewhere the text can be selected.
    void navigator.clipboard?.writeText(text).then(() => setCopied(true));
  };
  return (
    <div className="command">
      <pre>
        <code>{text}</code>
      </pre>
      <button type="button" className="control" onClick={copy}>
        {copied ? 'Copied' : `Copy ${label}`}
      </button>
    </div>
  );
}
