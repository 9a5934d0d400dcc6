/** The alerts of an account: what each is about, what it has fired, and its deliveries; admins make and change them here. */
import type { AlertAnswer, AlertWithSecretAnswer, FilterQuery } from '@meterline/client';
import { useEffect, useRef, useState } from 'react';
import { CopyButton } from '../controls/controls.js';
import { Sheet } from '../controls/sheet.js';
import { instantText } from '../period/period.js';
import { AlertEditor } from './alert-editor.js';
import { alertFilters, measuredText, subjectText, useAlertAction } from './alerts.js';
import { Deliveries } from './deliveries.js';

export interface AlertsPanelProps {
  readonly account: string;
  /** May make and change alerts. */
  readonly isAdmin: boolean;
  readonly alerts: readonly AlertAnswer[];
  /** Of the view: a new alert is about the same. */
  readonly filters: FilterQuery;
  readonly onClose: () => void;
}

const NEW = 'new';

export function AlertsPanel({ account, isAdmin, alerts, filters, onClose }: AlertsPanelProps) {
  /** The id of an alert. */
  const [edited, setEdited] = useState(alerts.length === 0 ? NEW : undefined);
  const [created, setCreated] = useState<AlertWithSecretAnswer>();
  const done = () => setEdited(undefined);
  const newFilters = alertFilters(filters);
  return (
    <Sheet
      className="alerts"
      title="Alerts"
      hint="A signed message to your endpoint when a calendar day or month (UTC) has cost, or used, so much."
      onClose={onClose}
    >
      <div className="alerts-list">
        {alerts.map((alert) =>
          alert.id === edited ? (
            <AlertEditor key={alert.id} {...{ account, alert }} filters={{}} onCancel={done} onSaved={done} />
          ) : (
            <AlertItem key={alert.id} {...{ account, isAdmin, alert }} onEdit={() => setEdited(alert.id)} />
          ),
        )}
        {created && <Secret of={created} />}
        {!isAdmin && <p className="hint">An admin of the account can make and change alerts.</p>}
        {isAdmin && !newFilters && (
          <p className="hint">
            A new alert has the filters of the page, but none can leave values out: clear them first.
          </p>
        )}
        {isAdmin && newFilters && edited === NEW && (
          <AlertEditor
            {...{ account }}
            filters={newFilters}
            onCancel={done}
            onSaved={(saved) => {
              setCreated(saved);
              done();
            }}
          />
        )}
        {isAdmin && newFilters && edited === undefined && (
          <button type="button" className="primary" onClick={() => setEdited(NEW)}>
            New alert
          </button>
        )}
      </div>
    </Sheet>
  );
}

/** The only time that it can be seen. */
function Secret({ of: { name, secret = '' } }: { readonly of: AlertWithSecretAnswer }) {
  const section = useRef<HTMLElement>(null);
  useEffect(() => section.current?.focus(), []);
  return (
    <section ref={section} className="notice" aria-label="Secret" role="status" tabIndex={-1}>
      <p>The secret of “{name}”, with which your endpoint checks the signature. It is not shown again: keep it now.</p>
      <p className="secret">
        <code>{secret}</code> <CopyButton text={secret} className="control" />
      </p>
    </section>
  );
}

interface AlertItemProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alert: AlertAnswer;
  readonly onEdit: () => void;
}

function AlertItem({ account, isAdmin, alert, onEdit }: AlertItemProps) {
  const { id, name, period, amount, thresholds, fired, url } = alert;
  const [isOpen, setOpen] = useState(false);
  const [isDeleting, setDeleting] = useState(false);
  const test = useAlertAction(account, (client) => client.alerts.test(account, id));
  const remove = useAlertAction(account, (client) => client.alerts.delete(account, id));
  const fault = test.error ?? remove.error;
  return (
    <article className="alert" aria-label={name}>
      <header className="alert-title">
        <h3>{name}</h3>
        <span className="alert-amount">
          {measuredText(amount, alert)} a {period}
        </span>
      </header>
      <p className="hint">{subjectText(alert.measure, alert.filters)}</p>
      <ul aria-label={`Thresholds, this ${period}`}>
        {thresholds.map((threshold) => {
          const reached = fired.find((each) => each.threshold === threshold);
          return (
            <li key={threshold} data-fired={reached !== undefined || undefined}>
              <strong>{threshold}%</strong>{' '}
              {reached
                ? `fired on ${instantText(reached.firedAt)}, at ${measuredText(reached.value, alert)}`
                : `not fired this ${period}`}
            </li>
          );
        })}
      </ul>
      <p className="hint">{url}</p>
      {fault && (
        <p className="fault" role="alert">
          {fault.message}
        </p>
      )}
      <div className="alert-actions">
        <button type="button" className="control" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </button>
        {isAdmin && !isDeleting && (
          <>
            <button
              type="button"
              className="control"
              disabled={test.isPending}
              onClick={() => test.mutate(undefined, { onSuccess: () => setOpen(true) })}
            >
              Send a test
            </button>
            <button type="button" className="control" onClick={onEdit}>
              Change
            </button>
            <button type="button" className="control" onClick={() => setDeleting(true)}>
              Delete
            </button>
          </>
        )}
        {isDeleting && (
          <>
            <button type="button" className="control" onClick={() => remove.mutate(undefined)}>
              Delete for good
            </button>
            <button type="button" className="quiet" onClick={() => setDeleting(false)}>
              Keep
            </button>
          </>
        )}
      </div>
      {isOpen && <Deliveries {...{ account, isAdmin }} alert={alert} />}
    </article>
  );
}
