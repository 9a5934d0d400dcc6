import {
  type AccountResponse,
  type ApiKeyResponse,
  accountPageSchema,
  accountSchema,
  apiKeyPageSchema,
  type BillingDimensionResponse,
  billingDimensionsEnumSchema,
  type CreatedApiKeyResponse,
  createdApiKeySchema,
  type EventPage,
  type EventsQuery,
  eventPageSchema,
  groupByEnumSchema,
  type Instant,
  type KeyRole,
  type MetricsEntry,
  type MetricsQuery,
  type MetricsResponse,
  metricsResponseSchema,
  type ResourceTypesQuery,
  resourceTypesEnumSchema,
} from '@meterline/catalog';
import type { GroupByDimension, ResourceType } from '@meterline/catalog/plain';
import { AlertsClient } from './alerts.js';
import {
  type GroupBy,
  type MetricsEntryBy,
  type MetricsQueryBy,
  type MetricsResponseBy,
  missingMember,
} from './grouping.js';
import {
  type EventsReceipt,
  MeterlineError,
  NO_EVENT_ACCEPTED,
  readReceipt,
  readResponse,
  unexpectedResponse,
} from './responses.js';
import {
  accountPath,
  apiKeysPath,
  type MeterlineClientOptions,
  MOST_RESTARTS,
  metricsPath,
  queryString,
  type RequestOptions,
  Transport,
} from './transport.js';

export interface PagesOptions extends RequestOptions {
  /** Forgets the pages that came, because they come again: events have changed the result while it was read. */
  readonly onRestart?: (() => void | Promise<void>) | undefined;
}

export interface AllMetricsOptions extends RequestOptions {
  /** Called after each page with the number of groups so far. It starts again with the pages when events have changed the result. */
  readonly onRead?: ((groups: number) => void) | undefined;
}

/** A new key of a service account. */
export interface NewApiKey {
  readonly role: KeyRole;
  /** An account that the caller is an admin of; needed by those who are an admin of several, and by provisioners. */
  readonly account?: string | undefined;
  /** In the future; default: never. */
  readonly expiresAt?: Instant | undefined;
}

/**
 * The query API. Money and usage are exact decimals as text; `amount` calculates with them, `formatUsd` and `formatUsage`
 * show them.
 *
 * Every call fails with a MeterlineError when the API refuses, with a MeterlineConnectionError when no response comes, and
 * with the reason of its signal when that is aborted.
 */
export class MeterlineClient {
  readonly alerts: AlertsClient;
  readonly #transport: Transport;

  /** @throws TypeError when `baseUrl` is not the address of an API */
  constructor(options: MeterlineClientOptions) {
    this.#transport = new Transport(options);
    this.alerts = new AlertsClient(this.#transport);
  }

  /**
   * One page of the usage and cost of an account or, as in the methods below, of `ALL_ACCOUNTS`; the first, unless the query
   * has a cursor. Where the query writes out its `groupBy`, the compiler knows which members the groups have.
   */
  metrics<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: RequestOptions,
  ): Promise<MetricsResponseBy<Dimensions>>;
  async metrics(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<MetricsResponse> {
    return (await this.#page(account, query, options)).page;
  }

  /**
   * All pages from the query's cursor to the last; a page is requested once the caller has used the one before. When the service cannot
   * go on, because an event has replaced what the first page showed, they come again from the first, twice at most, if
   * `onRestart` forgets those that came; else iterating fails with the code `cursor_expired`.
   */
  metricsPages<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: PagesOptions,
  ): AsyncGenerator<MetricsResponseBy<Dimensions>>;
  async *metricsPages(
    account: string,
    query: MetricsQuery,
    options: PagesOptions = {},
  ): AsyncGenerator<MetricsResponse> {
    for await (const { page } of this.#pages(account, query, options)) yield page;
  }

  /** The pages of {@link metricsPages}, each with the JSON text that the API sent. */
  metricsPagesWithText(
    account: string,
    query: MetricsQuery,
    options: PagesOptions = {},
  ): AsyncGenerator<{ readonly page: MetricsResponse; readonly text: string }> {
    return this.#pages(account, query, options);
  }

  /** The groups of {@link metricsPages} one by one, the most expensive first. */
  metricsEntries<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: PagesOptions,
  ): AsyncGenerator<MetricsEntryBy<Dimensions>>;
  async *metricsEntries(account: string, query: MetricsQuery, options?: PagesOptions): AsyncGenerator<MetricsEntry> {
    for await (const { data } of this.metricsPages(account, query, options)) yield* data;
  }

  /** All groups, as one response without further pages. */
  allMetrics<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: Omit<MetricsQueryBy<Dimensions>, 'cursor'>,
    options?: AllMetricsOptions,
  ): Promise<MetricsResponseBy<Dimensions>>;
  async allMetrics(account: string, query: MetricsQuery, options: AllMetricsOptions = {}): Promise<MetricsResponse> {
    const data: MetricsEntry[] = [];
    const onRestart = () => void data.splice(0);
    let last: MetricsResponse | undefined;
    for await (last of this.metricsPages(account, query, { ...options, onRestart })) {
      data.push(...last.data);
      options.onRead?.(data.length);
    }
    return { ...(last ?? (await this.metrics(account, query, options))), data };
  }

  /** The resource types with at least one event in the window, of those that the filters select. */
  async resourceTypes(
    account: string,
    query: ResourceTypesQuery,
    options: RequestOptions = {},
  ): Promise<ResourceType[]> {
    const path = `${accountPath(account)}/metrics/enums/resource-types?${queryString(query)}`;
    return (await this.#transport.read(path, resourceTypesEnumSchema, options)).values;
  }

  /**
   * A page of the events behind a figure, as they count now: for admins. The first, unless the query has a cursor. The API looks through
   * a part of what the account has at a time; this goes on until something is found, or there is no more.
   */
  async events(account: string, query: EventsQuery, options: RequestOptions = {}): Promise<EventPage> {
    return (await this.eventsWithText(account, query, options)).page;
  }

  /** The page of {@link events}, with the JSON text that the API sent. */
  async eventsWithText(
    account: string,
    query: EventsQuery,
    { signal }: RequestOptions = {},
  ): Promise<{ readonly page: EventPage; readonly text: string }> {
    const path = `${accountPath(account)}/events?${queryString(query)}`;
    const result = await this.#transport.send({ method: 'GET', path, signal });
    const page = readResponse(result, eventPageSchema);
    const { hasMore, nextCursor: cursor } = page.meta;
    if (page.data.length > 0 || !hasMore) return { page, text: result.text };
    return this.eventsWithText(account, { ...query, cursor }, { signal });
  }

  /**
   * Sends 1 to 5,000 usage events. The client needs the `baseUrl` of a collector and a key of the role emitter. Events may leave out
   * `accountId` if the key belongs to one account.
   * A request without a response is sent again, because an event counts once. A program that must not lose events uses `@meterline/emitter`.
   * @param options `isTrial`: only check the events and keep nothing
   */
  async sendEvents(
    events: readonly object[],
    { isTrial = false, signal }: RequestOptions & { readonly isTrial?: boolean } = {},
  ): Promise<EventsReceipt> {
    const path = `/v0/events${isTrial ? '?validate=only' : ''}`;
    const call = {
      method: 'POST',
      path,
      body: events,
      signal,
      isRepeatable: true,
      responseStatus: NO_EVENT_ACCEPTED,
    } as const;
    return readReceipt(await this.#transport.send(call), events.length, isTrial);
  }

  /** The dimensions that groupBy may name. */
  async groupByDimensions(account: string, options: RequestOptions = {}): Promise<GroupByDimension[]> {
    const path = `${accountPath(account)}/metrics/enums/group-by`;
    return (await this.#transport.read(path, groupByEnumSchema, options)).values;
  }

  /** What is billed: each billing dimension with its resource type, unit, and the price in force now for the account. */
  async billingDimensions(account: string, options: RequestOptions = {}): Promise<BillingDimensionResponse[]> {
    const path = `${accountPath(account)}/metrics/enums/billing-dimensions`;
    return (await this.#transport.read(path, billingDimensionsEnumSchema, options)).values;
  }

  /** Every account that the caller belongs to, by name. */
  async accounts(options: RequestOptions = {}): Promise<AccountResponse[]> {
    const accounts = await this.#transport.list('/v0/accounts', 'name:asc', accountPageSchema, options);
    return accounts.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Every key of a service account, revoked and expired ones included: for admins, and for provisioners.
   * @param options `account`: only keys of this account; required for a provisioner
   */
  async apiKeys(
    clientId: string,
    { account, ...options }: RequestOptions & { readonly account?: string | undefined } = {},
  ): Promise<ApiKeyResponse[]> {
    return this.#transport.list(apiKeysPath(clientId), 'createdAt:desc', apiKeyPageSchema, options, { account });
  }

  /** Every key of an account, revoked and expired ones included: for its admins and for provisioners. */
  async accountApiKeys(account: string, options: RequestOptions = {}): Promise<ApiKeyResponse[]> {
    return this.#transport.list(`${accountPath(account)}/api_keys`, 'createdAt:desc', apiKeyPageSchema, options);
  }

  /** Names an account, which registers it if it is new: for provisioners. */
  async nameAccount(account: string, name: string, { signal }: RequestOptions = {}): Promise<AccountResponse> {
    const call = { method: 'PUT', path: accountPath(account), body: { name }, signal, isRepeatable: true } as const;
    return this.#transport.call(call, accountSchema);
  }

  /**
   * Creates a key of a service account, and with its first key the service account. The key itself is in this response alone. The
   * request is not sent again when no response comes, or 503: whether there is a key then, {@link apiKeys} shows.
   */
  async createApiKey(
    clientId: string,
    body: NewApiKey,
    { signal }: RequestOptions = {},
  ): Promise<CreatedApiKeyResponse> {
    return this.#transport.call({ method: 'POST', path: apiKeysPath(clientId), body, signal }, createdApiKeySchema);
  }

  /** Revokes a key of a service account, at once and everywhere. Revoking it again is no error. */
  async revokeApiKey(clientId: string, apiKeyId: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove(`${apiKeysPath(clientId)}/${encodeURIComponent(apiKeyId)}`, options);
  }

  async *#pages(account: string, query: MetricsQuery, { onRestart, ...options }: PagesOptions) {
    let { cursor } = query;
    let { maxAgeSeconds } = options;
    for (let restarts = 0; ; ) {
      try {
        const read = await this.#page(account, { ...query, cursor }, { ...options, maxAgeSeconds });
        yield read;
        cursor = read.page.meta.nextCursor;
        if (cursor === '') return;
      } catch (error) {
        const isExpired = error instanceof MeterlineError && error.code === 'cursor_expired';
        if (!isExpired || !onRestart || query.cursor || restarts === MOST_RESTARTS) throw error;
        await onRestart();
        // The first page must not come from the API's memory again.
        [cursor, maxAgeSeconds, restarts] = [undefined, 0, restarts + 1];
      }
    }
  }

  async #page(account: string, query: MetricsQuery, options: RequestOptions) {
    const { signal, maxAgeSeconds } = options;
    const path = `${metricsPath(account)}?${queryString(query)}`;
    const sent = await this.#transport.send({ method: 'GET', path, signal, maxAgeSeconds });
    const page = readResponse(sent, metricsResponseSchema);
    const missing = missingMember(page, query.groupBy ?? []);
    if (missing !== undefined) throw unexpectedResponse(sent.response, `${missing} is missing`);
    return { page, text: sent.text };
  }
}
