/** The alerts of an account: what each is about, what it has fired, and its deliveries; admins make and change them here. */
import { counted } from '@meterline/catalog/plain';
import type { AlertResponse, AlertWithSecretResponse, DeliveryResponse, FilterQuery } from '@meterline/client';
import { useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import { Control, CopyButton, ErrorText, focusOn, Primary, Quiet, Sheet } from '../controls/controls.js';
import { instantText } from '../period/period.js';
import { useSession } from '../shell/session.js';
import { AlertEditor } from './alert-editor.js';
import { alertFilters, measuredText, subjectText, useAlertAction, useAlerts } from './alerts.js';

interface AlertsButtonProps {
  readonly account: string;
  /** May make and change alerts. */
  readonly isAdmin: boolean;
  readonly alerts: readonly AlertResponse[];
  /** The filters of the view: a new alert is about the same. */
  readonly filters: FilterQuery;
}

interface AlertsPanelProps extends AlertsButtonProps {
  /** The alert whose new secret is shown. */
  readonly created: AlertWithSecretResponse | undefined;
  readonly onCreated: (created: AlertWithSecretResponse | undefined) => void;
  readonly onClose: () => void;
}

/** Opens the account's alerts, and says how many have fired. */
export function AlertsButton(props: AlertsButtonProps) {
  const { alerts, isAdmin } = props;
  const [isOpen, setOpen] = useState(false);
  // A new secret may come when the panel is closed again; it is there when the panel is next opened.
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
  /** The id of an alert. */
  const [edited, setEdited] = useState(alerts.length === 0 ? NEW : undefined);
  /** The one that was edited before: what leads to it again has the focus. */
  const [left, setLeft] = useState<string>();
  const [isChanged, setChanged] = useState(false);
  const isHeld = isChanged || created !== undefined;
  const edit = (id: string | undefined, before?: string) => {
    setChanged(false);
    setLeft(before);
    setEdited(id);
  };
  const done = () => edit(undefined, edited);
  // Somebody else may have deleted the one that is edited.
  const isEditing = edited === NEW || alerts.some(({ id }) => id === edited);
  const newFilters = alertFilters(filters);
  return (
    <Sheet
      className="alerts"
      title="Alerts"
      hint="A signed message to your endpoint when a calendar day or month (UTC) has cost, or used, so much."
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
              wasEdited={alert.id === left}
              onEdit={() => edit(alert.id)}
            />
          ),
        )}
        {created && <Secret key={created.secret} of={created} onDone={() => onCreated(undefined)} />}
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
            onChanged={setChanged}
            onCancel={done}
            onSaved={() => edit(undefined)}
            onCreated={onCreated}
          />
        )}
        {isAdmin && newFilters && !isEditing && !isHeld && (
          <Primary ref={left === NEW ? focusOn : undefined} onClick={() => edit(NEW)}>
            New alert
          </Primary>
        )}
      </div>
    </Sheet>
  );
}

interface SecretProps {
  readonly of: AlertWithSecretResponse;
  readonly onDone: () => void;
}

/** The only time that it can be seen. */
function Secret({ of: { name, secret = '' }, onDone }: SecretProps) {
  return (
    <section ref={focusOn} className="notice" aria-label="Secret" role="status" tabIndex={-1}>
      <p>The secret of “{name}”, with which your endpoint checks the signature. It is not shown again: keep it now.</p>
      <p className="secret">
        <code>{secret}</code>
      </p>
      <div className="alert-actions">
        <CopyButton text={secret} className="control" />
        <Control onClick={onDone}>Done</Control>
      </div>
    </section>
  );
}

interface AlertItemProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alert: AlertResponse;
  /** A change or a new secret has to be dealt with first. */
  readonly isHeld: boolean;
  readonly wasEdited: boolean;
  readonly onEdit: () => void;
  readonly onCreated: (created: AlertWithSecretResponse) => void;
}

const CONFIRM = { delete: 'Delete for good', secret: 'Make a new secret' } as const;

function AlertItem({ account, isAdmin, alert, isHeld, wasEdited, onEdit, onCreated }: AlertItemProps) {
  const { id, name, period, amount, thresholds, fired, url } = alert;
  const [isOpen, setOpen] = useState(false);
  /** What is to be confirmed, and what was not done after all. */
  const [asked, setAsked] = useState<keyof typeof CONFIRM>();
  const [kept, setKept] = useState<keyof typeof CONFIRM>();
  const test = useAlertAction(account, (client) => client.alerts.test(account, id));
  const remove = useAlertAction(account, (client) => client.alerts.delete(account, id));
  const rotate = useAlertAction(account, async (client) =>
    onCreated(await client.alerts.update(account, id, { rotateSecret: true })),
  );
  const problem = test.error ?? remove.error ?? rotate.error;
  const ask = (action: keyof typeof CONFIRM | undefined) => {
    setKept(asked);
    setAsked(action);
  };
  const confirmed = asked === 'delete' ? remove : rotate;
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
      <ErrorText>{problem?.message}</ErrorText>
      <div className="alert-actions">
        <Control aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          Deliveries
        </Control>
        {isAdmin && !asked && (
          <>
            <Control
              disabled={test.isPending}
              onClick={() => test.mutate(undefined, { onSuccess: () => setOpen(true) })}
            >
              Send a test
            </Control>
            <Control ref={wasEdited ? focusOn : undefined} disabled={isHeld} onClick={onEdit}>
              Change
            </Control>
            <Control
              ref={kept === 'secret' && !isHeld ? focusOn : undefined}
              disabled={isHeld}
              onClick={() => ask('secret')}
            >
              New secret
            </Control>
            <Control ref={kept === 'delete' ? focusOn : undefined} onClick={() => ask('delete')}>
              Delete
            </Control>
          </>
        )}
        {asked && (
          <>
            {asked === 'secret' && <p className="hint">The old secret stays valid for 24 hours.</p>}
            <Control
              disabled={confirmed.isPending}
              onClick={() => confirmed.mutate(undefined, { onSettled: () => ask(undefined) })}
            >
              {CONFIRM[asked]}
            </Control>
            <Quiet ref={focusOn} onClick={() => ask(undefined)}>
              Keep
            </Quiet>
          </>
        )}
      </div>
      {isOpen && <Deliveries {...{ account, isAdmin }} alert={alert} />}
    </article>
  );
}

const SHOWN = 10;
/** How often the list is read again while a delivery is on its way. */
const LOOK_MS = 2_000;

/** The newest deliveries of an alert: whether they came through, and why not. */
function Deliveries({ account, isAdmin, alert: { id, name } }: Pick<AlertItemProps, 'account' | 'isAdmin' | 'alert'>) {
  const { client } = useSession();
  const { data, error } = useQuery({
    queryKey: ['alerts', account, id],
    queryFn: ({ signal }) => client.alerts.deliveries(account, id, { signal }),
    refetchInterval: ({ state }) => state.data?.some((each) => each.state === 'pending') && LOOK_MS,
  });
  const again = useAlertAction(account, (api, delivery: string) => api.alerts.redeliver(account, id, delivery));
  const problem = error ?? again.error;
  return (
    <section aria-label={`Deliveries of ${name}`}>
      <ErrorText>{problem?.message}</ErrorText>
      {data?.length === 0 && <p className="hint">Nothing was sent yet.</p>}
      <ul className="deliveries">
        {data?.slice(0, SHOWN).map((delivery) => (
          <li key={delivery.id}>
            <span>{instantText(delivery.createdAt)}</span>
            <span>{thresholdText(delivery)}</span>
            <span className={delivery.state === 'failed' ? 'error-text' : undefined}>{stateText(delivery)}</span>
            {isAdmin && delivery.state !== 'pending' && (
              <Quiet disabled={again.isPending} onClick={() => again.mutate(delivery.id)}>
                Send again
              </Quiet>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

const STATE = { pending: 'On its way', delivered: 'Delivered', failed: 'Failed' } as const;

function thresholdText({ payload: { data } }: DeliveryResponse): string {
  return data.threshold === undefined ? 'Test' : `${data.threshold}%`;
}

/** `Failed, after 14 attempts: 503`. */
function stateText({ state, attempts, lastOutcome }: DeliveryResponse): string {
  if (state === 'delivered' || lastOutcome === undefined) return STATE[state];
  return `${STATE[state]}, after ${counted(attempts, 'attempt')}: ${lastOutcome}`;
}
