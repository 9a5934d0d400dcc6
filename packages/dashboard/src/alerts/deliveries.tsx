/** Renders the newest deliveries of an alert, with the reasons of failures. */
import { counted } from '@meterline/catalog/plain';
import type { AlertResponse, DeliveryResponse } from '@meterline/client';
import { useQuery } from '@tanstack/react-query';
import { ErrorText, TextButton } from '../controls/controls.js';
import { instantText } from '../period/period.js';
import { useSession } from '../shell/session.js';
import { useAlertAction } from './alerts.js';

const MAX_DELIVERIES = 10;
const POLL_MS = 2_000;

interface DeliveriesProps {
  readonly account: string;
  readonly isAdmin: boolean;
  readonly alert: AlertResponse;
}

export function Deliveries({ account, isAdmin, alert: { id, name } }: DeliveriesProps) {
  const { client } = useSession();
  const { data, error } = useQuery({
    queryKey: ['alerts', account, id],
    queryFn: ({ signal }) => client.alerts.deliveries(account, id, { signal }),
    refetchInterval: ({ state }) => state.data?.some((each) => each.state === 'pending') && POLL_MS,
  });
  const redelivery = useAlertAction(account, (api, delivery: string) => api.alerts.redeliver(account, id, delivery));
  const problem = error ?? redelivery.error;
  return (
    <section aria-label={`Deliveries of ${name}`}>
      <ErrorText>{problem?.message}</ErrorText>
      {data?.length === 0 && <p className="hint">Nothing has been sent yet.</p>}
      <ul className="deliveries">
        {data?.slice(0, MAX_DELIVERIES).map((delivery) => (
          <li key={delivery.id}>
            <span>{instantText(delivery.createdAt)}</span>
            <span title={delivery.to}>{thresholdText(delivery)}</span>
            <span className={delivery.state === 'failed' ? 'error-text' : undefined}>{stateText(delivery)}</span>
            {isAdmin && delivery.state !== 'pending' && (
              <TextButton disabled={redelivery.isPending} onClick={() => redelivery.mutate(delivery.id)}>
                Resend
              </TextButton>
            )}
          </li>
        ))}
      </ul>
      {data && data.length > MAX_DELIVERIES && (
        <p className="hint">
          The list shows the newest {MAX_DELIVERIES} of {data.length}.
        </p>
      )}
    </section>
  );
}

const STATE = { pending: 'Pending', delivered: 'Delivered', failed: 'Failed' } as const;

/** Describes why a delivery was sent, and to whom if it is an e-mail, such as `Forecast 100% to finance@example.com`. */
function thresholdText({ payload: { data }, to }: DeliveryResponse): string {
  const prefix = data.forecast === undefined ? '' : 'Forecast ';
  const reason = data.threshold === undefined ? 'Test' : `${prefix}${data.threshold}%`;
  return to === undefined ? reason : `${reason} to ${to}`;
}

/** Describes the state of a delivery, such as `Failed after 14 attempts: 503`. */
function stateText({ state, attempts, lastOutcome }: DeliveryResponse): string {
  if (state === 'delivered' || lastOutcome === undefined) return STATE[state];
  return `${STATE[state]} after ${counted(attempts, 'attempt')}: ${lastOutcome}`;
}
