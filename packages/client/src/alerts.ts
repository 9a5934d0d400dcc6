/** Manages spend alerts: messages sent when cost or usage in a calendar day or month passes a threshold (webhook, Slack, Teams or e-mail). */
import {
  type AlertChange,
  type AlertResponse,
  type AlertWithSecretResponse,
  alertPageSchema,
  alertSchema,
  alertWithSecretSchema,
  type DeliveryResponse,
  deliveryPageSchema,
  deliverySchema,
  type NewAlert,
} from '@meterline/catalog';
import type { RequestOptions, Transport } from './transport.js';
import { accountPath } from './transport.js';

/** Makes a type deeply readonly. Callers can then also pass objects that they have declared `as const`. */
type Constant<Type> = Type extends object ? { readonly [Name in keyof Type]: Constant<Type[Name]> } : Type;

/** A new alert. `amount` is a decimal string: an amount in USD, or usage in the unit of the billing dimension. */
export type NewAlertBody = Constant<NewAlert>;
export type AlertChangeBody = Constant<AlertChange>;

/** Manages alerts. Admins can change alerts. Members can read alerts without a workspace filter. Throws like {@link MeterlineClient}. */
export class AlertsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Returns all alerts of the account, oldest first, each with its thresholds that have fired in the current period. */
  async list(account: string, options: RequestOptions = {}): Promise<AlertResponse[]> {
    return this.#transport.list(pathOf(account), 'createdAt:asc', alertPageSchema, options);
  }

  async get(account: string, alertId: string, options: RequestOptions = {}): Promise<AlertResponse> {
    return this.#transport.read(pathOf(account, alertId), alertSchema, options);
  }

  /**
   * Creates an alert. Only this response contains the secret that signs webhooks. The client does not retry this request after a connection
   * error or a 503, because the first attempt may have created the alert. Call {@link list} to find out.
   */
  async create(account: string, body: NewAlertBody, { signal }: RequestOptions = {}): Promise<AlertWithSecretResponse> {
    return this.#transport.call({ method: 'POST', path: pathOf(account), body, signal }, alertWithSecretSchema);
  }

  /**
   * Changes an alert. After a change of the period, measure, amount or filters, thresholds that are already crossed fire once more. The
   * response contains the signing secret only if the change created a new secret.
   */
  async update(
    account: string,
    alertId: string,
    body: AlertChangeBody,
    { signal }: RequestOptions = {},
  ): Promise<AlertWithSecretResponse> {
    return this.#transport.call(
      { method: 'PATCH', path: pathOf(account, alertId), body, signal },
      alertWithSecretSchema,
    );
  }

  /** Deletes an alert and discards its pending deliveries. */
  async delete(account: string, alertId: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove(pathOf(account, alertId), options);
  }

  /** Sends a test message. Call {@link deliveries} to see its outcome. */
  async test(account: string, alertId: string, { signal }: RequestOptions = {}): Promise<DeliveryResponse> {
    const path = `${pathOf(account, alertId)}/test`;
    return this.#transport.call({ method: 'POST', path, signal }, deliverySchema);
  }

  /** Returns the deliveries of an alert (pending, delivered and failed), newest first. */
  async deliveries(account: string, alertId: string, options: RequestOptions = {}): Promise<DeliveryResponse[]> {
    const path = `${pathOf(account, alertId)}/deliveries`;
    return this.#transport.list(path, 'createdAt:desc', deliveryPageSchema, options);
  }

  /** Sends a delivery again with the same payload and the same ID. */
  async redeliver(
    account: string,
    alertId: string,
    deliveryId: string,
    { signal }: RequestOptions = {},
  ): Promise<DeliveryResponse> {
    const path = `${pathOf(account, alertId)}/deliveries/${encodeURIComponent(deliveryId)}/redeliver`;
    return this.#transport.call({ method: 'POST', path, signal }, deliverySchema);
  }
}

function pathOf(account: string, alertId?: string): string {
  return `${accountPath(account)}/alerts${alertId === undefined ? '' : `/${encodeURIComponent(alertId)}`}`;
}
