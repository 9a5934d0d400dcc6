/** The alerts of accounts: signed messages when a calendar day or month has cost, or used, so much. */
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

/** A parameter, which may be constant. */
type Constant<Type> = Type extends object ? { readonly [Name in keyof Type]: Constant<Type[Name]> } : Type;

/** A new alert. Its amount is a decimal as text: USD, or usage in the unit of its billing dimension. */
export type NewAlertBody = Constant<NewAlert>;
/** Members that are left out stay as they are. */
export type AlertChangeBody = Constant<AlertChange>;

/** Admins of the account write alerts; members read those that name no workspace. The calls fail as those of the client do. */
export class AlertsClient {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Every alert of the account, the oldest first, with what it has fired in its present period. */
  async list(account: string, options: RequestOptions = {}): Promise<AlertResponse[]> {
    return this.#transport.list(pathOf(account), 'createdAt:asc', alertPageSchema, options);
  }

  async get(account: string, alertId: string, options: RequestOptions = {}): Promise<AlertResponse> {
    return this.#transport.read(pathOf(account, alertId), alertSchema, options);
  }

  /** The secret is in this response alone. When no response comes, or 503, the request is not sent again: {@link list} shows whether there is one. */
  async create(account: string, body: NewAlertBody, { signal }: RequestOptions = {}): Promise<AlertWithSecretResponse> {
    return this.#transport.call({ method: 'POST', path: pathOf(account), body, signal }, alertWithSecretSchema);
  }

  /** A change of what is watched fires, once, for what is crossed already. The response has the secret if there is a new one. */
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

  /** What the alert has still to send is not sent. */
  async delete(account: string, alertId: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove(pathOf(account, alertId), options);
  }

  /** Sends a test; {@link deliveries} shows how it ended. */
  async test(account: string, alertId: string, { signal }: RequestOptions = {}): Promise<DeliveryResponse> {
    const path = `${pathOf(account, alertId)}/test`;
    return this.#transport.call({ method: 'POST', path, signal }, deliverySchema);
  }

  /** What the alert has sent, and has still to send, the newest first. */
  async deliveries(account: string, alertId: string, options: RequestOptions = {}): Promise<DeliveryResponse[]> {
    const path = `${pathOf(account, alertId)}/deliveries`;
    return this.#transport.list(path, 'createdAt:desc', deliveryPageSchema, options);
  }

  /** Sends the same again, with the same id. */
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
