/** The newest deliveries of an alert: whether they came through, and why not. */
import { counted } from '@meterline/catalog';
import type { AlertAnswer, DeliveryAnswer } from '@meterline/client';
import { useQuery } from '@tanstack/react-query';
import { instantText } from '../period/period.js';
import { useSession } from '../shell/session.js';
import { useAlertAction } from './alerts.js';

interface DeliveriesProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alert: AlertAnswer;
}

const SHOWN = 10;
/** So often the list is read again while something is on its way. */
const LOOK_MS = 2_000;

export function Deliveries({ account, isAdmin, alert: { id, name } }: DeliveriesProps) {
  const { client } = useSession();
  const { data, error } = useQuery({
    queryKey: ['alerts', account, id],
    queryFn: ({ signal }) => client.alerts.deliveries(account, id, { signal }),
    refetchInterval: ({ state }) => state.data?.some((each) => each.state === 'pending') && LOOK_MS,
  });
  const again = useAlertAction(account, (api, delivery: string) => api.alerts.redeliver(account, id, delivery));
  const fault = error ?? again.error;
  return (
    <section aria-label={`Deliveries of ${name}`}>
      {fault && (
        <p className="fault" role="alert">
          {fault.message}
        </p>
      )}
      {data?.length === 0 && <p className="hint">Nothing was sent yet.</p>}
      <ul className="deliveries">
        {data?.slice(0, SHOWN).map((delivery) => (
          <li key={delivery.id}>
            <span>{instantText(delivery.createdAt)}</span>
            <span>{thresholdText(delivery)}</span>
            <span className={delivery.state === 'failed' ? 'fault' : undefined}>{stateText(delivery)}</span>
            {isAdmin && delivery.state !== 'pending' && (
              <button
                type="button"
                className="quiet"
                disabled={again.isPending}
                onClick={() => again.mutate(delivery.id)}
              >
                Send again
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}

const STATE = { pending: 'On its way', delivered: 'Delivered', failed: 'Failed' } as const;

function thresholdText({ payload: { data } }: DeliveryAnswer): string {
  return data.threshold === undefined ? 'Test' : `${data.threshold}%`;
}

/** `Failed, after 14 attempts: 503`. */
function stateText({ state, attempts, lastOutcome }: DeliveryAnswer): string {
  if (state === 'delivered' || lastOutcome === undefined) return STATE[state];
  return `${STATE[state]}, after ${counted(attempts, 'attempt')}: ${lastOutcome}`;
}
