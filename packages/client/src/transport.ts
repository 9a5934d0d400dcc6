/** Sends requests, each with its retries, and reads what comes back. */
import type { EventsQuery, Instant, MetricsQuery } from '@meterline/catalog';
import {
  abortable,
  backOffMs,
  isAwayStatus,
  MAX_LIST_PAGE,
  NEWEST_API_VERSION,
  NO_ACCOUNT_PATH,
  parseRetryAfter,
  serviceAddress,
} from '@meterline/catalog/plain';
import {
  errorOfResponse,
  type Fetch,
  MeterlineConnectionError,
  type RawResponse,
  readResponse,
  type SchemaOf,
  unexpectedResponse,
} from './responses.js';

const VISIBLE_ASCII = /^[\x21-\x7e]*$/;
const DEFAULT_RETRIES = 3;
const DEFAULT_TIMEOUT_MS = 60_000;

interface CommonOptions {
  /** Where the API is, with or without `/v0`: `https://billing.example.com`. */
  readonly baseUrl: string;
  /** Default: the platform's. */
  readonly fetch?: Fetch | undefined;
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
  /**
   * How old the first page of metrics may be, up to 300 s, such as 15 for a panel that refreshes: the API may then answer from memory.
   * Default: it is computed, with every event that was stored before. Other requests are always computed.
   */
  readonly maxAgeSeconds?: number | undefined;
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT';
  /** From `/v0` on, with its query. */
  readonly path: string;
  /** Sent as JSON; undefined: there is none. */
  readonly body?: unknown;
  readonly signal: AbortSignal | undefined;
  /** How old the response may be; undefined: it is computed. */
  readonly maxAgeSeconds?: number | undefined;
  /** Whether it may be carried out twice: only then it is sent again when no response came, or the service is away; by default a GET may. */
  readonly isRepeatable?: boolean;
  /** A status other than 2xx whose body is a response all the same. */
  readonly responseStatus?: number;
}

interface ListPage<Item> {
  readonly data: readonly Item[];
  readonly meta: { readonly nextCursor: string };
}

export class Transport {
  readonly #options: { readonly [Name in keyof CommonOptions]-?: NonNullable<CommonOptions[Name]> };
  readonly #credential: () => string | Promise<string>;

  constructor({ credential, getCredential, ...options }: MeterlineClientOptions) {
    this.#credential = getCredential ?? (() => credential);
    this.#options = {
      baseUrl: serviceAddress(options.baseUrl, (problem) => new TypeError(`baseUrl ${problem}`)),
      // Browsers refuse to call fetch as the method of another object.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      retries: options.retries ?? DEFAULT_RETRIES,
      timeout: options.timeout ?? DEFAULT_TIMEOUT_MS,
    };
  }

  /**
   * @throws MeterlineError for a response other than 2xx
   * @throws MeterlineConnectionError when no response came
   * @throws the signal's reason once it is aborted
   */
  async send(call: Call): Promise<RawResponse> {
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#attempt(call);
      if ('text' in outcome && (outcome.response.ok || outcome.response.status === call.responseStatus)) return outcome;
      const wait = attempt < this.#options.retries ? waitAfter(outcome, call, attempt) : undefined;
      if (wait === undefined) {
        throw outcome instanceof Error ? outcome : errorOfResponse(outcome.response, outcome.text, new Date());
      }
      await pause(wait, call.signal);
    }
  }

  /** A GET, whose response is never from the service's memory. @throws as `send`; MeterlineError for another shape */
  read<Value>(path: string, schema: SchemaOf<Value>, { signal }: RequestOptions): Promise<Value> {
    return this.call({ method: 'GET', path, signal }, schema);
  }

  /** @throws as `read` */
  async call<Value>(call: Call, schema: SchemaOf<Value>): Promise<Value> {
    return readResponse(await this.send(call), schema);
  }

  /** A DELETE, which the API answers without a body. @throws as `read` */
  async remove(path: string, { signal }: RequestOptions): Promise<void> {
    const { response, text } = await this.send({ method: 'DELETE', path, signal });
    if (text !== '') throw unexpectedResponse(response, 'it has a body');
  }

  /** All pages of a list. */
  async list<Item>(
    path: string,
    sort: string,
    page: SchemaOf<ListPage<Item>>,
    options: RequestOptions,
    filters: Parameters<typeof encoded>[0] = {},
  ): Promise<Item[]> {
    const items: Item[] = [];
    let cursor: string | undefined;
    do {
      const query = encoded({ ...filters, sort, limit: String(MAX_LIST_PAGE), cursor });
      const { data, meta } = await this.read(`${path}?${query}`, page, options);
      items.push(...data);
      cursor = meta.nextCursor;
    } while (cursor !== '');
    return items;
  }

  async #attempt({ method, path, body, signal, maxAgeSeconds }: Call): Promise<RawResponse | MeterlineConnectionError> {
    const { baseUrl, timeout } = this.#options;
    signal?.throwIfAborted();
    const deadline = AbortSignal.timeout(timeout);
    const either = signal ? AbortSignal.any([signal, deadline]) : deadline;
    let isRequested = false;
    const responded = async () => {
      const credential = await this.#credential();
      // fetch would quote it in its error.
      if (!VISIBLE_ASCII.test(credential))
        throw new TypeError('the credential is not one line of visible ASCII characters');
      const headers = {
        Accept: 'application/json',
        Authorization: `Bearer ${credential}`,
        'Svc-Version': NEWEST_API_VERSION,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
        ...(maxAgeSeconds !== undefined && { 'Cache-Control': `max-age=${maxAgeSeconds}` }),
      };
      isRequested = true;
      const response = await this.#options.fetch(`${baseUrl}${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        cache: 'no-store',
        credentials: 'omit',
        signal: either,
      });
      return { response, text: await response.text() };
    };
    try {
      return await abortable(responded(), either);
    } catch (cause) {
      signal?.throwIfAborted();
      if (!isRequested && !deadline.aborted) throw cause;
      const whose = isRequested ? `The API at ${baseUrl}` : 'getCredential';
      const failure = deadline.aborted ? `did not answer within ${timeout / 1000} s` : 'cannot be reached';
      return new MeterlineConnectionError(`${whose} ${failure}.`, { cause });
    }
  }
}

/** Undefined when another attempt makes no sense. */
function waitAfter(
  outcome: RawResponse | MeterlineConnectionError,
  { method, isRepeatable = method === 'GET' }: Call,
  attempt: number,
): number | undefined {
  if (outcome instanceof MeterlineConnectionError) {
    return isRepeatable ? waitBeforeRetry(attempt, undefined, Math.random()) : undefined;
  }
  const { headers, status } = outcome.response;
  // 429: the request was not executed. Other statuses: it may have been; the failure may have come after a write.
  if (status !== 429 && !(isAwayStatus(status) && isRepeatable)) return undefined;
  return waitBeforeRetry(attempt, parseRetryAfter(headers.get('retry-after'), new Date()), Math.random());
}

/** How often a result is read again that changes while its pages are read. */
export const MOST_RESTARTS = 2;

/** The longest wait between two attempts; if the service asks for more, the call fails. */
export const LONGEST_WAIT_MS = 30_000;

const BACK_OFF = { firstMs: 250, longestMs: 8_000 };
/** Added at random to a Retry-After, so that not all callers return at the same moment. */
const SPREAD_MS = 250;

/**
 * Milliseconds to wait before the next attempt; undefined when the service asks for more than {@link LONGEST_WAIT_MS}.
 * The wait is never shorter than a Retry-After.
 * @param attempt the one that failed, from 0
 * @param random 0 (inclusive) to 1 (exclusive)
 */
export function waitBeforeRetry(attempt: number, retryAfterMs: number | undefined, random: number): number | undefined {
  if (retryAfterMs !== undefined) {
    return retryAfterMs > LONGEST_WAIT_MS ? undefined : retryAfterMs + Math.round(random * SPREAD_MS);
  }
  return backOffMs(attempt, BACK_OFF, random);
}

/** Resolves after the time; rejects with the signal's reason as soon as it is aborted. */
async function pause(milliseconds: number, signal = new AbortController().signal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await abortable(end, signal).finally(() => clearTimeout(timer));
}

/**
 * In place of an account: all that the caller may read, in one response. Such a query may group by `account`, and filter with
 * `account` and `excludeAccount`. No account is called so: a name has no control characters.
 */
export const ALL_ACCOUNTS = '\0all accounts';

/** Where the API has the metrics of an account, or of all. */
export function metricsPath(account: string): string {
  return account === ALL_ACCOUNTS ? '/v0/metrics' : `${accountPath(account)}/metrics`;
}

export function accountPath(account: string): string {
  return `/v0/accounts/${pathSegment(account)}`;
}

export function apiKeysPath(clientId: string): string {
  return `/v0/service_accounts/${pathSegment(clientId)}/api_keys`;
}

/** @throws TypeError for a name that would make it the path of something else */
function pathSegment(name: string): string {
  if (NO_ACCOUNT_PATH.test(name)) throw new TypeError(`no address can have ${JSON.stringify(name)} in its path`);
  return encodeURIComponent(name);
}

/**
 * The query string without its question mark. Undefined parameters are left out; an empty text is sent.
 * @throws TypeError for a filter without a value, which would select everything
 */
export function queryString({ groupBy = [], ...others }: MetricsQuery & EventsQuery): string {
  return encoded({ ...others, groupBy: groupBy.join(',') || undefined });
}

type Value = Instant | number | boolean;

/** Several values of a parameter are sent one by one. */
function encoded(parameters: Readonly<Record<string, Value | readonly Value[] | undefined>>): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    if (Array.isArray(value) && value.length === 0 && !name.startsWith('exclude'))
      throw new TypeError(`${name} must have a value or be left out`);
    for (const each of [value].flat()) sent.append(name, each instanceof Date ? each.toISOString() : String(each));
  }
  return sent.toString();
}
