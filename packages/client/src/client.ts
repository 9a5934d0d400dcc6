import {
  API_VERSIONS,
  type ApiVersion,
  type GroupByDimension,
  hasPaginatedLists,
  type ResourceType,
} from '@meterline/catalog';
import {
  type AccountAnswer,
  accountArraySchema,
  accountPageSchema,
  groupByEnumSchema,
  type Instant,
  type MetricsAnswer,
  type MetricsQuery,
  metricsAnswerSchema,
  readExactJson,
  resourceTypesEnumSchema,
  type WindowQuery,
} from '@meterline/catalog/api';
import { unexpectedAnswer } from './errors.js';
import { type RawAnswer, Transport } from './transport.js';

const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 60_000;
const LARGEST_ACCOUNT_PAGE = '200';

interface CommonOptions {
  /** Where the API is, with or without `/v0`: `https://billing.example.com`. */
  readonly baseUrl: string;
  /** Default: the newest that this client knows. */
  readonly apiVersion?: ApiVersion | undefined;
  /** Default: the platform's. */
  readonly fetch?: typeof fetch | undefined;
  /** Attempts after the first, when the API is busy or cannot be reached; default 3. */
  readonly retries?: number | undefined;
  /** Milliseconds for one attempt, default 60,000. */
  readonly timeout?: number | undefined;
}

/** An API key or access token, or a function that returns one: called before every attempt, so that it can be renewed. */
export type MeterlineClientOptions = CommonOptions &
  (
    | { readonly credential: string; readonly getCredential?: never }
    | { readonly credential?: never; readonly getCredential: () => string | Promise<string> }
  );

export interface RequestOptions {
  /** Aborting it ends the call at once, waits between attempts included; the call fails with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** The part of a zod schema that this file uses. */
interface AnswerSchema<Value> {
  safeParse(input: unknown): { success: true; data: Value } | { success: false; error: Error };
}

/**
 * The query API. Money and usage are exact decimals as text (`DecimalText`); the catalog adds, compares and formats them.
 *
 * Every call fails with a MeterlineError when the API refuses, with a MeterlineConnectionError when no answer comes, and
 * with the reason of its signal when that is aborted.
 */
export class MeterlineClient {
  readonly #transport: Transport;
  readonly #apiVersion: ApiVersion;

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
      baseUrl: baseUrl.replace(/\/+$/, '').replace(/\/v0$/, ''),
      credential: getCredential ?? (() => credential),
      apiVersion: this.#apiVersion,
      // Browsers refuse to call fetch as the method of another object.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      retries: retries ?? DEFAULT_RETRIES,
      timeout: timeout ?? DEFAULT_TIMEOUT_MS,
    });
  }

  /** One page of usage and cost; the first, unless the query has a cursor. */
  async metrics(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<MetricsAnswer> {
    return readAnswer(await this.#metrics(account, query, options), metricsAnswerSchema);
  }

  /** The same page as the JSON text that the API sent. */
  async metricsText(account: string, query: MetricsQuery, options: RequestOptions = {}): Promise<string> {
    return (await this.#metrics(account, query, options)).text;
  }

  /** All pages from the query's cursor to the last; a page is requested once the caller has used the one before. */
  async *metricsPages(
    account: string,
    query: MetricsQuery,
    options: RequestOptions = {},
  ): AsyncGenerator<MetricsAnswer> {
    let { cursor } = query;
    do {
      const page = await this.metrics(account, { ...query, cursor }, options);
      yield page;
      cursor = page.meta.nextCursor;
    } while (cursor !== '');
  }

  /** The resource types with at least one event in the window. */
  async resourceTypes(
    account: string,
    { startTime, endTime }: WindowQuery,
    options: RequestOptions = {},
  ): Promise<ResourceType[]> {
    const window = queryString({ startTime: instantText(startTime), endTime: instantText(endTime) });
    const path = `${accountPath(account)}/metrics/enums/resource-types?${window}`;
    return (await this.#read(path, resourceTypesEnumSchema, options)).values;
  }

  /** The dimensions that groupBy may name. */
  async groupByDimensions(account: string, options: RequestOptions = {}): Promise<GroupByDimension[]> {
    return (await this.#read(`${accountPath(account)}/metrics/enums/group-by`, groupByEnumSchema, options)).values;
  }

  /** Every account that the caller belongs to, by name. */
  async accounts(options: RequestOptions = {}): Promise<AccountAnswer[]> {
    if (!hasPaginatedLists(this.#apiVersion)) {
      const accounts = await this.#read('/v0/accounts', accountArraySchema, options);
      return accounts.sort((a, b) => (a.name < b.name ? -1 : 1));
    }
    const accounts: AccountAnswer[] = [];
    let cursor: string | undefined;
    do {
      const query = queryString({ sort: 'name:asc', limit: LARGEST_ACCOUNT_PAGE, cursor });
      const { data, meta } = await this.#read(`/v0/accounts?${query}`, accountPageSchema, options);
      accounts.push(...data);
      cursor = meta.nextCursor;
    } while (cursor !== '');
    return accounts;
  }

  /** Revokes a key of a service account, at once and everywhere. Revoking it again is no error. */
  async revokeApiKey(clientId: string, apiKeyId: string, { signal }: RequestOptions = {}): Promise<void> {
    const path = `/v0/service_accounts/${encodeURIComponent(clientId)}/api_keys/${encodeURIComponent(apiKeyId)}`;
    await this.#transport.send({ method: 'DELETE', path, signal });
  }

  #metrics(account: string, query: MetricsQuery, { signal }: RequestOptions): Promise<RawAnswer> {
    const path = `${accountPath(account)}/metrics?${metricsQueryString(query)}`;
    return this.#transport.send({ method: 'GET', path, signal });
  }

  async #read<Value>(path: string, schema: AnswerSchema<Value>, { signal }: RequestOptions): Promise<Value> {
    return readAnswer(await this.#transport.send({ method: 'GET', path, signal }), schema);
  }
}

function accountPath(account: string): string {
  return `/v0/accounts/${encodeURIComponent(account)}`;
}

/** The query string without its question mark. Undefined parameters are left out; an empty text is sent. */
function metricsQueryString({ startTime, endTime, groupBy, limit, ...others }: MetricsQuery): string {
  return queryString({
    startTime: instantText(startTime),
    endTime: instantText(endTime),
    groupBy: groupBy && groupBy.length > 0 ? groupBy.join(',') : undefined,
    limit: limit?.toString(),
    ...others,
  });
}

function queryString(parameters: Readonly<Record<string, string | undefined>>): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) if (value !== undefined) sent.set(name, value);
  return sent.toString();
}

function instantText(instant: Instant): string {
  return typeof instant === 'string' ? instant : instant.toISOString();
}

/** @throws MeterlineError when the body does not match the schema */
function readAnswer<Value>({ response, text }: RawAnswer, schema: AnswerSchema<Value>): Value {
  let body: unknown;
  try {
    body = readExactJson(text);
  } catch (error) {
    throw unexpectedAnswer(response, error);
  }
  const value = schema.safeParse(body);
  if (value.success) return value.data;
  throw unexpectedAnswer(response, value.error);
}
