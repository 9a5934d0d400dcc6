/** Renders the alerts of an account with their thresholds. Admins create and edit alerts here. */
import { alertUnit, decimalText } from '@meterline/catalog/plain';
import type { AlertResponse, AlertWithSecretResponse, FilterQuery } from '@meterline/client';
import { useState } from 'react';
import {
  CopyButton,
  ErrorText,
  focusOn,
  OutlineButton,
  PrimaryButton,
  Sheet,
  TextButton,
} from '../controls/controls.js';
import { instantText } from '../period/period.js';
import { Amount } from '../table/cells.js';
import { AlertEditor, KINDS, kindOf } from './alert-editor.js';
import { alertFilters, measuredText, subjectText, useAlertAction, useAlerts } from './alerts.js';
import { Deliveries } from './deliveries.js';

interface AlertsButtonProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alerts: readonly AlertResponse[];
  /** The filters of the view. A new alert gets a copy of them. */
  readonly filters: FilterQuery;
}

interface AlertsPanelProps extends AlertsButtonProps {
  readonly created: AlertWithSecretResponse | undefined;
  readonly onCreated: (created: AlertWithSecretResponse | undefined) => void;
  readonly onClose: () => void;
}

export function AlertsButton(props: AlertsButtonProps) {
  const { alerts, isAdmin } = props;
  const [isOpen, setOpen] = useState(false);
  // The response with a new secret may arrive after the panel has closed. The secret then appears when the panel opens again.
  const [created, setCreated] = useState<AlertWithSecretResponse>();
  if (alerts.length === 0 && !isAdmin && !isOpen) return null;
  const fired = alerts.filter((alert) => alert.fired.length > 0).length;
  return (
    <>
      <button
        type="button"
        className={fired > 0 ? 'control active' : 'control'}
        aria-haspopup="dialog"
        onClick={() => setOpen(true)}
      >
        {alerts.length === 0 ? 'Set an alert' : 'Alerts'}
        {fired > 0 && <span className="control-value">{fired} fired</span>}
      </button>
      {isOpen && <AlertsPanel {...props} created={created} onCreated={setCreated} onClose={() => setOpen(false)} />}
    </>
  );
}

const NEW = 'new';

function AlertsPanel({ account, isAdmin, alerts, filters, created, onCreated, onClose }: AlertsPanelProps) {
  useAlerts(account, true, true);
  const [edited, setEdited] = useState(alerts.length === 0 ? NEW : undefined);
  /** The alert that was edited last. Its Edit button gets the focus. */
  const [lastEdited, setLastEdited] = useState<string>();
  const [isChanged, setChanged] = useState(false);
  const isHeld = isChanged || created !== undefined;
  const edit = (id: string | undefined, before?: string) => {
    setChanged(false);
    setLastEdited(before);
    setEdited(id);
  };
  const done = () => edit(undefined, edited);
  // Another admin may have deleted the alert that the editor shows.
  const isEditing = edited === NEW || alerts.some(({ id }) => id === edited);
  const newFilters = alertFilters(filters);
  return (
    <Sheet
      className="alerts"
      title="Alerts"
      hint="Get a webhook, a message or an e-mail when spend or usage in a day or month (UTC) passes a threshold."
      {...{ isHeld, onClose }}
    >
      <div className="alerts-list">
        {alerts.map((alert) =>
          alert.id === edited ? (
            <AlertEditor
              key={alert.id}
              {...{ account, alert, onCreated }}
              filters={{}}
              onChanged={setChanged}
              onCancel={done}
              onSaved={done}
            />
          ) : (
            <AlertItem
              key={alert.id}
              {...{ account, isAdmin, isHeld, alert, onCreated }}
              wasEdited={alert.id === lastEdited}
              onEdit={() => edit(alert.id)}
            />
          ),
        )}
        {created && <Secret key={created.secret} of={created} onDone={() => onCreated(undefined)} />}
        {!isAdmin && <p className="hint">Only admins of the account can create and edit alerts.</p>}
        {isAdmin && !newFilters && (
          <p className="hint">
            A new alert uses the filters of this view, but alerts cannot exclude values. Clear those filters first.
          </p>
        )}
        {isAdmin && newFilters && edited === NEW && (
          <AlertEditor
            {...{ account }}
            filters={newFilters}
            onChanged={setChanged}
            onCancel={done}
            onSaved={() => edit(undefined)}
            onCreated={onCreated}
          />
        )}
        {isAdmin && newFilters && !isEditing && !isHeld && (
          <PrimaryButton ref={lastEdited === NEW ? focusOn : undefined} onClick={() => edit(NEW)}>
            New alert
          </PrimaryButton>
        )}
      </div>
    </Sheet>
  );
}

interface SecretProps {
  readonly of: AlertWithSecretResponse;
  readonly onDone: () => void;
}

/** Shows the secret of an alert. The page cannot show the secret again. */
function Secret({ of: { name, secret = '' }, onDone }: SecretProps) {
  return (
    <section ref={focusOn} className="notice" aria-label="Secret" role="status" tabIndex={-1}>
      <p>
        This is the signing secret of “{name}”. Your endpoint needs it to verify signatures. Copy it now, because you
        cannot see it again.
      </p>
      <p className="secret">
        <code>{secret}</code>
      </p>
      <div className="alert-actions">
        <CopyButton text={secret} className="control" />
        <OutlineButton onClick={onDone}>Done</OutlineButton>
      </div>
    </section>
  );
}

interface AlertItemProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alert: AlertResponse;
  readonly isHeld: boolean;
  readonly wasEdited: boolean;
  readonly onEdit: () => void;
  readonly onCreated: (created: AlertWithSecretResponse) => void;
}

/** An amount of an alert. Usage has the unit of the API, as in the editor. */
function Measured({ amount, alert }: { readonly amount: string; readonly alert: AlertResponse }) {
  if (alertUnit(alert) !== undefined) return measuredText(amount, alert);
  return <Amount amount={decimalText(amount)} unit={undefined} isExact={false} />;
}

const CONFIRM = { delete: 'Delete permanently', secret: 'Rotate now' } as const;

function AlertItem({ account, isAdmin, alert, isHeld, wasEdited, onEdit, onCreated }: AlertItemProps) {
  const { id, name, period, amount, thresholds, fired, forecast, forecastFired, format, url, to } = alert;
  const [isOpen, setOpen] = useState(false);
  const [pending, setPending] = useState<keyof typeof CONFIRM>();
  /** The action that the user canceled. Its button gets the focus. */
  const [canceled, setCanceled] = useState<keyof typeof CONFIRM>();
  const test = useAlertAction(account, (client) => client.alerts.test(account, id));
  const remove = useAlertAction(account, (client) => client.alerts.delete(account, id));
  const rotate = useAlertAction(account, async (client) =>
    onCreated(await client.alerts.update(account, id, { rotateSecret: true })),
  );
  const problem = test.error ?? remove.error ?? rotate.error;
  const confirm = (action: keyof typeof CONFIRM | undefined) => {
    setCanceled(pending);
    setPending(action);
  };
  const outcome = (reached: { readonly firedAt: string; readonly value: string } | undefined) => {
    if (!reached) return `not fired this ${period}`;
    return (
      <>
        fired on {instantText(reached.firedAt)} at <Measured amount={reached.value} alert={alert} />
      </>
    );
  };
  const mutation = pending === 'delete' ? remove : rotate;
  return (
    <article className="alert" aria-label={name}>
      <header className="alert-title">
        <h3>{name}</h3>
        <span className="alert-amount">
          <Measured {...{ amount, alert }} /> per {period}
        </span>
      </header>
      <p className="hint">{subjectText(alert.measure, alert.filters)}</p>
      <ul aria-label={`Thresholds, this ${period}`}>
        {thresholds.map((threshold) => {
          const reached = fired.find((each) => each.threshold === threshold);
          return (
            <li key={threshold} data-fired={reached !== undefined || undefined}>
              <strong>{threshold}%</strong> {outcome(reached)}
            </li>
          );
        })}
        {forecast.map((threshold) => {
          const reached = forecastFired.find((each) => each.threshold === threshold);
          return (
            <li key={`forecast ${threshold}`} data-fired={reached !== undefined || undefined}>
              <strong>Forecast {threshold}%</strong> {outcome(reached && { ...reached, value: reached.forecast })}
            </li>
          );
        })}
      </ul>
      <p className="hint">
        {KINDS.find(({ value }) => value === kindOf(alert))?.label}: {to?.join(', ') ?? url}
      </p>
      <ErrorText>{problem?.message}</ErrorText>
      <div className="alert-actions">
        <OutlineButton aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </OutlineButton>
        {isAdmin && !pending && (
          <>
            <OutlineButton
              disabled={test.isPending}
              onClick={() => test.mutate(undefined, { onSuccess: () => setOpen(true) })}
            >
              Send test
            </OutlineButton>
            <OutlineButton ref={wasEdited ? focusOn : undefined} disabled={isHeld} onClick={onEdit}>
              Edit
            </OutlineButton>
            {format === 'standard' && (
              <OutlineButton
                ref={canceled === 'secret' && !isHeld ? focusOn : undefined}
                disabled={isHeld}
                onClick={() => confirm('secret')}
              >
                Rotate secret
              </OutlineButton>
            )}
            <OutlineButton ref={canceled === 'delete' ? focusOn : undefined} onClick={() => confirm('delete')}>
              Delete
            </OutlineButton>
          </>
        )}
        {pending && (
          <>
            {pending === 'secret' && <p className="hint">The old secret stays valid for 24 hours.</p>}
            <OutlineButton
              disabled={mutation.isPending}
              onClick={() => mutation.mutate(undefined, { onSettled: () => confirm(undefined) })}
            >
              {CONFIRM[pending]}
            </OutlineButton>
            <TextButton ref={focusOn} onClick={() => confirm(undefined)}>
              Cancel
            </TextButton>
          </>
        )}
      </div>
      {isOpen && <Deliveries {...{ account, isAdmin }} alert={alert} />}
    </article>
  );
}
