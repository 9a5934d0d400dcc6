import type {
  AccountAnswer,
  ApiKeyAnswer,
  BillingDimensionAnswer,
  CreatedApiKeyAnswer,
  EventPage,
  EventsQuery,
  MetricsAnswer,
  MetricsEntry,
  MetricsQuery,
  ResourceTypesQuery,
} from '@meterline/catalog/api';
import {
  API_VERSIONS,
  type ApiVersion,
  type GroupByDimension,
  hasPaginatedLists,
  MAX_LIST_PAGE,
  type ResourceType,
} from '@meterline/catalog/questions';
import { MeterlineError, unexpectedAnswer } from './errors.js';
import {
  type GroupBy,
  type MetricsAnswerBy,
  type MetricsEntryBy,
  type MetricsQueryBy,
  missingMember,
} from './grouping.js';
import type { MeterlineClientOptions, NewApiKey, RequestOptions } from './options.js';
import { readAnswer, type SchemaOf } from './read-answer.js';
import { type RawAnswer, Transport } from './transport.js';
import { accountPath, apiAddress, apiKeysPath, instantText, queryString, questionString } from './urls.js';

const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 60_000;
/** An answer that changes faster than it can be read is not read again for ever. */
const MOST_WALKS = 3;

interface ListPage<Item> {
  readonly data: readonly Item[];
  readonly meta: { readonly nextCursor: string };
}

/**
 * The query API. Money and usage are exact decimals as text; `amount` calculates with them, `formatUsd` and `formatUsage`
 * show them.
 *
 * Every call fails with a MeterlineError when the API refuses, with a MeterlineConnectionError when no answer comes, and
 * with the reason of its signal when that is aborted.
 */
export class MeterlineClient {
  readonly #transport: Transport;
  readonly #apiVersion: ApiVersion;

  /** @throws TypeError when `baseUrl` is not the address of an API */
  constructor({
    baseUrl,
    credential,
    getCredential,
    apiVersion,
    retries,
    timeout,
    ...options
  }: MeterlineClientOptions) {
    this.#apiVersion = apiVersion ?? API_VERSIONS[API_VERSIONS.length - 1] ?? API_VERSIONS[0];
    this.#transport = new Transport({
      baseUrl: apiAddress(baseUrl),
      credential: getCredential ?? (() => credential),
      apiVersion: this.#apiVersion,
      // Browsers refuse to call fetch as the method of another object.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      retries: retries ?? DEFAULT_RETRIES,
      timeout: timeout ?? DEFAULT_TIMEOUT_MS,
    });
  }

  /**
   * One page of usage and cost; the first, unless the query has a cursor. Where the query writes out its `groupBy`, the
   * compiler knows which members the groups have.
   */
  metrics<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: RequestOptions,
  ): Promise<MetricsAnswerBy<Dimensions>>;
  async metrics(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<MetricsAnswer> {
    const sent = this.#metrics(account, query, options);
    const page = await readAnswer(sent, (schemas) => schemas.metricsAnswerSchema);
    const missing = missingMember(page, query.groupBy ?? []);
    if (missing !== undefined) throw unexpectedAnswer((await sent).response, `${missing} is missing`);
    return page;
  }

  /** The same page as the JSON text that the API sent. */
  async metricsText(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<string> {
    return (await this.#metrics(account, query, options)).text;
  }

  /**
   * All pages from the query's cursor to the last; a page is requested once the caller has used the one before. A walk that
   * the service cannot go on with fails with the code `cursor_expired`, after pages that stay right and are not all:
   * {@link allMetrics} begins again by itself.
   */
  metricsPages<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: RequestOptions,
  ): AsyncGenerator<MetricsAnswerBy<Dimensions>>;
  async *metricsPages(
    account: string,
    query: MetricsQuery,
    options: RequestOptions = {},
  ): AsyncGenerator<MetricsAnswer> {
    let { cursor } = query;
    do {
      const page: MetricsAnswer = await this.metrics(account, { ...query, cursor }, options);
      yield page;
      cursor = page.meta.nextCursor;
    } while (cursor !== '');
  }

  /** The groups of {@link metricsPages} one by one, the most expensive first. */
  metricsEntries<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: MetricsQueryBy<Dimensions>,
    options?: RequestOptions,
  ): AsyncGenerator<MetricsEntryBy<Dimensions>>;
  async *metricsEntries(
    account: string,
    query: MetricsQuery,
    options: RequestOptions = {},
  ): AsyncGenerator<MetricsEntry> {
    for await (const { data } of this.metricsPages(account, query, options)) yield* data;
  }

  /**
   * All groups, as one answer without further pages. Begins again, twice at most, when the service cannot go on with a walk
   * (`cursor_expired`): nothing has been given to the caller yet.
   */
  allMetrics<const Dimensions extends GroupBy = readonly []>(
    account: string,
    query: Omit<MetricsQueryBy<Dimensions>, 'cursor'>,
    options?: RequestOptions,
  ): Promise<MetricsAnswerBy<Dimensions>>;
  async allMetrics(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<MetricsAnswer> {
    for (let walk = 1; ; walk += 1) {
      try {
        return await this.#walk(account, query, options);
      } catch (error) {
        const isExpired = error instanceof MeterlineError && error.code === 'cursor_expired';
        if (!isExpired || walk === MOST_WALKS) throw error;
      }
    }
  }

  /** The resource types with at least one event in the window, of those that the filters select. */
  async resourceTypes(
    account: string,
    query: ResourceTypesQuery,
    options: RequestOptions = {},
  ): Promise<ResourceType[]> {
    const path = `${accountPath(account)}/metrics/enums/resource-types?${questionString(query)}`;
    return (await this.#read(path, (schemas) => schemas.resourceTypesEnumSchema, options)).values;
  }

  /** A page of the events behind a figure, as they count now: for admins. The first, unless the query has a cursor. */
  async events(account: string, query: EventsQuery, options: RequestOptions = {}): Promise<EventPage> {
    return readAnswer(this.#events(account, query, options), (schemas) => schemas.eventPageSchema);
  }

  /** The same page as the JSON text that the API sent. */
  async eventsText(account: string, query: EventsQuery, options: RequestOptions = {}): Promise<string> {
    return (await this.#events(account, query, options)).text;
  }

  /** The dimensions that groupBy may name. */
  async groupByDimensions(account: string, options: RequestOptions = {}): Promise<GroupByDimension[]> {
    const path = `${accountPath(account)}/metrics/enums/group-by`;
    return (await this.#read(path, (schemas) => schemas.groupByEnumSchema, options)).values;
  }

  /** What is billed: each billing dimension with its resource type and unit. */
  async billingDimensions(account: string, options: RequestOptions = {}): Promise<BillingDimensionAnswer[]> {
    const path = `${accountPath(account)}/metrics/enums/billing-dimensions`;
    return (await this.#read(path, (schemas) => schemas.billingDimensionsEnumSchema, options)).values;
  }

  /** Every account that the caller belongs to, by name. */
  async accounts(options: RequestOptions = {}): Promise<AccountAnswer[]> {
    const array: SchemaOf<AccountAnswer[]> = (schemas) => schemas.accountArraySchema;
    const page: SchemaOf<ListPage<AccountAnswer>> = (schemas) => schemas.accountPageSchema;
    const accounts = await this.#list('/v0/accounts', 'name:asc', { array, page }, options);
    if (hasPaginatedLists(this.#apiVersion)) return accounts;
    return accounts.sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  /** Every key of a service account, revoked and expired ones included: for admins. */
  async apiKeys(clientId: string, options: RequestOptions = {}): Promise<ApiKeyAnswer[]> {
    const array: SchemaOf<ApiKeyAnswer[]> = (schemas) => schemas.apiKeyArraySchema;
    const page: SchemaOf<ListPage<ApiKeyAnswer>> = (schemas) => schemas.apiKeyPageSchema;
    return this.#list(apiKeysPath(clientId), 'createdAt:desc', { array, page }, options);
  }

  /**
   * Creates a key of a service account, and with its first key the service account. The key itself is in this answer alone. The
   * request is not sent again when no answer comes: whether there is a key then, {@link apiKeys} shows.
   */
  async createApiKey(
    clientId: string,
    { expiresAt, ...others }: NewApiKey,
    { signal }: RequestOptions = {},
  ): Promise<CreatedApiKeyAnswer> {
    const body = { ...others, expiresAt: expiresAt && instantText(expiresAt) };
    const sent = this.#transport.send({ method: 'POST', path: apiKeysPath(clientId), body, signal });
    return readAnswer(sent, (schemas) => schemas.createdApiKeySchema);
  }

  /** Revokes a key of a service account, at once and everywhere. Revoking it again is no error. */
  async revokeApiKey(clientId: string, apiKeyId: string, { signal }: RequestOptions = {}): Promise<void> {
    const path = `${apiKeysPath(clientId)}/${encodeURIComponent(apiKeyId)}`;
    await this.#transport.send({ method: 'DELETE', path, signal });
  }

  /** All pages of a list; before lists had pages, the whole in an order of the service's. */
  async #list<Item>(
    path: string,
    sort: string,
    { array, page }: { readonly array: SchemaOf<Item[]>; readonly page: SchemaOf<ListPage<Item>> },
    options: RequestOptions,
  ): Promise<Item[]> {
    if (!hasPaginatedLists(this.#apiVersion)) return this.#read(path, array, options);
    const items: Item[] = [];
    let cursor: string | undefined;
    do {
      const query = queryString({ sort, limit: String(MAX_LIST_PAGE), cursor });
      const { data, meta } = await this.#read(`${path}?${query}`, page, options);
      items.push(...data);
      cursor = meta.nextCursor;
    } while (cursor !== '');
    return items;
  }

  async #walk(account: string, query: MetricsQuery, options: RequestOptions): Promise<MetricsAnswer> {
    const data: MetricsEntry[] = [];
    let cursor: string | undefined;
    while (true) {
      const page = await this.metrics(account, { ...query, cursor }, options);
      data.push(...page.data);
      if (!page.meta.hasMore) return { ...page, data };
      cursor = page.meta.nextCursor;
    }
  }

  #metrics(account: string, query: MetricsQuery, { signal }: RequestOptions): Promise<RawAnswer> {
    const path = `${accountPath(account)}/metrics?${questionString(query)}`;
    return this.#transport.send({ method: 'GET', path, signal });
  }

  #events(account: string, query: EventsQuery, { signal }: RequestOptions): Promise<RawAnswer> {
    const path = `${accountPath(account)}/events?${questionString(query)}`;
    return this.#transport.send({ method: 'GET', path, signal });
  }

  #read<Value>(path: string, schemaOf: SchemaOf<Value>, { signal }: RequestOptions): Promise<Value> {
    return readAnswer(this.#transport.send({ method: 'GET', path, signal }), schemaOf);
  }
}
