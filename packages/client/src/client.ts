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
  MAX_RESTARTS,
  type MeterlineClientOptions,
  metricsPath,
  queryString,
  type RequestOptions,
  Transport,
} from './transport.js';
import { ViewsClient } from './views.js';

export interface PageOptions extends RequestOptions {
  /** Called with the JSON string of each page before the page is returned. Useful for callers that pass the JSON on unchanged. */
  readonly onText?: ((text: string) => void) | undefined;
}

export interface PagesOptions extends PageOptions {
  /** Called before iteration restarts because the result changed. The callback must discard the pages read so far. */
  readonly onRestart?: (() => void | Promise<void>) | undefined;
}

export interface AllMetricsOptions extends RequestOptions {
  /** Called after each page with the number of groups read so far. The number restarts if the result changes. */
  readonly onRead?: ((groups: number) => void) | undefined;
}

export interface NewApiKey {
  readonly role: KeyRole;
  /** The account that the key belongs to. The caller must be an admin of it. Provisioners, and admins of several accounts, must set it. */
  readonly account?: string | undefined;
  readonly expiresAt?: Instant | undefined;
}

/**
 * Calls the query API. Amounts in responses are exact decimal strings: `amount` calculates with them, and `formatUsd` and `formatUsage`
 * format them.
 * Every call throws a MeterlineError if the API returns an error, and a MeterlineConnectionError if there is no response. If the signal is
 * aborted, the call throws the signal's reason.
 */
export class MeterlineClient {
  readonly alerts: AlertsClient;
  readonly views: ViewsClient;
  readonly #transport: Transport;

  /** @throws TypeError if `baseUrl` is invalid, or if there is no credential */
  constructor(options: MeterlineClientOptions) {
    this.#transport = new Transport(options);
    this.alerts = new AlertsClient(this.#transport);
    this.views = new ViewsClient(this.#transport);
  }

  /**
   * Returns one page of usage and cost: the page at the query's cursor, or the first page without a cursor. If `groupBy` is a literal
   * array, TypeScript infers the fields of the groups.
   * @param account an account ID or `ALL_ACCOUNTS`, here and in the methods below
   */
  metrics<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: PageOptions,
  ): Promise<MetricsResponseBy<Dimensions>>;
  async metrics(
    account: string,
    query: MetricsQuery,
    { signal, maxAgeSeconds, onText }: PageOptions = {},
  ): Promise<MetricsResponse> {
    const path = `${metricsPath(account)}?${queryString(query)}`;
    const sent = await this.#transport.send({ method: 'GET', path, signal, maxAgeSeconds });
    const page = readResponse(sent, metricsResponseSchema);
    const missing = missingMember(page, query.groupBy ?? []);
    if (missing !== undefined) throw unexpectedResponse(sent.response, `${missing} is missing`);
    onText?.(sent.text);
    return page;
  }

  /**
   * Iterates over all pages, starting at the query's cursor. Each page is requested when the caller reaches it.
   * If new events change the result during the iteration, later pages no longer match the first page. If the options have `onRestart`, the
   * iteration then restarts from the first page, at most twice. Otherwise it fails with the code `cursor_expired`.
   */
  metricsPages<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: PagesOptions,
  ): AsyncGenerator<MetricsResponseBy<Dimensions>>;
  async *metricsPages(
    account: string,
    query: MetricsQuery,
    { onRestart, ...options }: PagesOptions = {},
  ): AsyncGenerator<MetricsResponse> {
    let { cursor } = query;
    let { maxAgeSeconds } = options;
    for (let restarts = 0; ; ) {
      try {
        const page = await this.metrics(account, { ...query, cursor }, { ...options, maxAgeSeconds });
        yield page;
        cursor = page.meta.nextCursor;
        if (cursor === '') return;
      } catch (error) {
        const isExpired = error instanceof MeterlineError && error.code === 'cursor_expired';
        if (!isExpired || !onRestart || query.cursor || restarts === MAX_RESTARTS) throw error;
        await onRestart();
        // Bypass the API's response cache, because its first page contains the expired cursor.
        [cursor, maxAgeSeconds, restarts] = [undefined, 0, restarts + 1];
      }
    }
  }

  /** Iterates over the groups of {@link metricsPages}, most expensive first. */
  metricsEntries<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: PagesOptions,
  ): AsyncGenerator<MetricsEntryBy<Dimensions>>;
  async *metricsEntries(account: string, query: MetricsQuery, options?: PagesOptions): AsyncGenerator<MetricsEntry> {
    for await (const { data } of this.metricsPages(account, query, options)) yield* data;
  }

  /** Reads all pages and returns their groups as one response. */
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

  /** Returns the resource types with events in the window that match the filters. */
  async resourceTypes(
    account: string,
    query: ResourceTypesQuery,
    options: RequestOptions = {},
  ): Promise<ResourceType[]> {
    const path = `${accountPath(account)}/metrics/enums/resource-types?${queryString(query)}`;
    return (await this.#transport.read(path, resourceTypesEnumSchema, options)).values;
  }

  /**
   * Returns one page of the events that an amount was computed from, each in its current revision: the page at the query's cursor, or the
   * first page without a cursor. For admins.
   * The API searches a limited part of the account's events per request. This method therefore repeats the request until a page has events
   * or the search ends.
   */
  async events(account: string, query: EventsQuery, { signal, onText }: PageOptions = {}): Promise<EventPage> {
    for (let { cursor } = query; ; ) {
      const path = `${accountPath(account)}/events?${queryString({ ...query, cursor })}`;
      const sent = await this.#transport.send({ method: 'GET', path, signal });
      const page = readResponse(sent, eventPageSchema);
      if (page.data.length > 0 || !page.meta.hasMore) {
        onText?.(sent.text);
        return page;
      }
      cursor = page.meta.nextCursor;
    }
  }

  /** Iterates over all pages of {@link events}, starting at the query's cursor. To sort events by cost, use `allEvents` instead. */
  async *eventsPages(account: string, query: EventsQuery, options?: PageOptions): AsyncGenerator<EventPage> {
    for (let { cursor } = query; ; ) {
      const page = await this.events(account, { ...query, cursor }, options);
      yield page;
      if (!page.meta.hasMore) return;
      cursor = page.meta.nextCursor;
    }
  }

  /**
   * Sends 1 to 5,000 usage events. The client needs the `baseUrl` of a collector and a key with the role emitter. If the key belongs to one
   * account, the events may omit `accountId`.
   * The client retries a request that got no response. This is safe, because an event that is sent twice counts once. A program that must
   * not lose events should use `@meterline/emitter` instead.
   * @param options `isTrial`: check the events without storing them
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

  async groupByDimensions(account: string, options: RequestOptions = {}): Promise<GroupByDimension[]> {
    const path = `${accountPath(account)}/metrics/enums/group-by`;
    return (await this.#transport.read(path, groupByEnumSchema, options)).values;
  }

  /** Returns all billing dimensions, each with its resource type, its unit, and the account's current price. */
  async billingDimensions(account: string, options: RequestOptions = {}): Promise<BillingDimensionResponse[]> {
    const path = `${accountPath(account)}/metrics/enums/billing-dimensions`;
    return (await this.#transport.read(path, billingDimensionsEnumSchema, options)).values;
  }

  /** Returns all accounts of the caller, sorted by name. */
  async accounts(options: RequestOptions = {}): Promise<AccountResponse[]> {
    const accounts = await this.#transport.list('/v0/accounts', 'name:asc', accountPageSchema, options);
    return accounts.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /**
   * Returns all keys of a service account, including revoked and expired keys. For admins and provisioners.
   * @param options `account`: return only the keys of this account (required for provisioners)
   */
  async apiKeys(
    clientId: string,
    { account, ...options }: RequestOptions & { readonly account?: string | undefined } = {},
  ): Promise<ApiKeyResponse[]> {
    return this.#transport.list(apiKeysPath(clientId), 'createdAt:desc', apiKeyPageSchema, options, { account });
  }

  /** Returns all keys of an account, including revoked and expired keys. For admins and provisioners. */
  async accountApiKeys(account: string, options: RequestOptions = {}): Promise<ApiKeyResponse[]> {
    return this.#transport.list(`${accountPath(account)}/api_keys`, 'createdAt:desc', apiKeyPageSchema, options);
  }

  /** Sets the name of an account, and registers the account if it is new. For provisioners. */
  async nameAccount(account: string, name: string, { signal }: RequestOptions = {}): Promise<AccountResponse> {
    const call = { method: 'PUT', path: accountPath(account), body: { name }, signal, isRepeatable: true } as const;
    return this.#transport.call(call, accountSchema);
  }

  /**
   * Creates a key of a service account. Creates the service account as well if this is its first key. Only this response contains the key.
   * The client does not retry this request after a connection error or a 503, because the first attempt may have created the key. Call
   * {@link apiKeys} to find out.
   */
  async createApiKey(
    clientId: string,
    body: NewApiKey,
    { signal }: RequestOptions = {},
  ): Promise<CreatedApiKeyResponse> {
    return this.#transport.call({ method: 'POST', path: apiKeysPath(clientId), body, signal }, createdApiKeySchema);
  }

  /** Revokes a key of a service account immediately. Succeeds as well if the key is already revoked. */
  async revokeApiKey(clientId: string, apiKeyId: string, options: RequestOptions = {}): Promise<void> {
    await this.#transport.remove(`${apiKeysPath(clientId)}/${encodeURIComponent(apiKeyId)}`, options);
  }
}
