/** Sends requests with retries and validates the responses. */
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
  /** Address of the API, with or without `/v0`, such as `https://billing.example.com`. */
  readonly baseUrl: string;
  /** Default: the global `fetch`. */
  readonly fetch?: Fetch | undefined;
  /** Maximum number of retries if the API is busy or unreachable (default: 3). */
  readonly retries?: number | undefined;
  /** Timeout of each attempt in milliseconds (default: 60,000). */
  readonly timeout?: number | undefined;
}

/** `credential` is an API key or access token. `getCredential` is called before every attempt, so it can renew an expired token. */
export type MeterlineClientOptions = CommonOptions &
  (
    | { readonly credential: string; readonly getCredential?: never }
    | { readonly credential?: never; readonly getCredential: () => string | Promise<string> }
  );

export interface RequestOptions {
  /** Cancels the call and its waits between retries. The call then throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Maximum age in seconds of the first page of metrics, up to 300. The API may then return a cached response. A dashboard panel that
   * refreshes can use 15, for example. By default, nothing is cached, and the response includes every event stored before the request.
   * Only metrics have cached responses. Other calls ignore this option.
   */
  readonly maxAgeSeconds?: number | undefined;
}

interface Call {
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE' | 'PUT';
  readonly path: string;
  readonly body?: unknown;
  readonly signal: AbortSignal | undefined;
  readonly maxAgeSeconds?: number | undefined;
  /** Whether the request is idempotent (default: only GET). The client retries idempotent requests after a connection error or a 5xx. */
  readonly isRepeatable?: boolean;
  /** A status outside 2xx that `send` returns instead of throwing an error. */
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
    // Plain JavaScript can pass an environment variable that is not set.
    if (!getCredential && !credential) {
      throw new TypeError(
        'credential must be an API key or access token, or getCredential a function that returns one',
      );
    }
    this.#credential = getCredential ?? (() => credential);
    this.#options = {
      baseUrl: serviceAddress(options.baseUrl, (problem) => new TypeError(`baseUrl ${problem}`)),
      // Browsers throw an error if fetch is called as a method of an object other than the global object.
      fetch: options.fetch ?? ((input, init) => fetch(input, init)),
      retries: options.retries ?? DEFAULT_RETRIES,
      timeout: options.timeout ?? DEFAULT_TIMEOUT_MS,
    };
  }

  /** @throws MeterlineError for a status outside 2xx, MeterlineConnectionError without a response, or the reason of an aborted signal */
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

  /** Sends a GET and bypasses the response cache. @throws the errors of `send`, and MeterlineError if the body is invalid */
  read<Value>(path: string, schema: SchemaOf<Value>, { signal }: RequestOptions): Promise<Value> {
    return this.call({ method: 'GET', path, signal }, schema);
  }

  async call<Value>(call: Call, schema: SchemaOf<Value>): Promise<Value> {
    return readResponse(await this.send(call), schema);
  }

  /** Sends a DELETE. @throws the errors of `send`, and MeterlineError if the response has a body */
  async remove(path: string, { signal }: RequestOptions): Promise<void> {
    const { response, text } = await this.send({ method: 'DELETE', path, signal });
    if (text !== '') throw unexpectedResponse(response, 'it has a body');
  }

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
    const request = async () => {
      const credential = await this.#credential();
      // Check the characters here. `fetch` would reject them too, but its error message contains the credential.
      if (typeof credential !== 'string' || !VISIBLE_ASCII.test(credential))
        throw new TypeError('the credential must be one line of visible ASCII characters');
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
      return await abortable(request(), either);
    } catch (cause) {
      signal?.throwIfAborted();
      if (!isRequested && !deadline.aborted) throw cause;
      const subject = isRequested ? `The API at ${baseUrl}` : 'getCredential';
      const failure = deadline.aborted ? `did not respond within ${timeout / 1000} s` : 'cannot be reached';
      return new MeterlineConnectionError(`${subject} ${failure}.`, { cause });
    }
  }
}

/** Returns the wait before the next attempt in milliseconds, or undefined if the call must not be retried. */
function waitAfter(
  outcome: RawResponse | MeterlineConnectionError,
  { method, isRepeatable = method === 'GET' }: Call,
  attempt: number,
): number | undefined {
  if (outcome instanceof MeterlineConnectionError) {
    return isRepeatable ? waitBeforeRetry(attempt, undefined, Math.random()) : undefined;
  }
  const { headers, status } = outcome.response;
  // A 429 means that the service did not execute the request. With all other errors, a write may have happened.
  if (status !== 429 && !(isAwayStatus(status) && isRepeatable)) return undefined;
  return waitBeforeRetry(attempt, parseRetryAfter(headers.get('retry-after'), new Date()), Math.random());
}

export const MAX_RESTARTS = 2;

/** Maximum wait between two attempts. If Retry-After is longer, the call fails instead. */
export const MAX_WAIT_MS = 30_000;

const BACK_OFF = { firstMs: 250, longestMs: 8_000 };
/** Maximum jitter in milliseconds added to Retry-After, so that clients do not all retry at the same moment. */
const JITTER_MS = 250;

/**
 * Returns the milliseconds to wait before the next attempt: the exponential back-off, or Retry-After plus jitter. Returns undefined if
 * Retry-After exceeds {@link MAX_WAIT_MS}.
 * @param attempt the number of the failed attempt, from 0
 * @param random a number from 0 (inclusive) to 1 (exclusive)
 */
export function waitBeforeRetry(attempt: number, retryAfterMs: number | undefined, random: number): number | undefined {
  if (retryAfterMs !== undefined) {
    return retryAfterMs > MAX_WAIT_MS ? undefined : retryAfterMs + Math.round(random * JITTER_MS);
  }
  return backOffMs(attempt, BACK_OFF, random);
}

/** Waits for this time. @throws the signal's reason as soon as the signal is aborted */
async function pause(milliseconds: number, signal = new AbortController().signal): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const end = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, milliseconds);
  });
  await abortable(end, signal).finally(() => clearTimeout(timer));
}

/**
 * Pass this constant instead of an account ID to query all accounts of the caller together. Such a query can group by `account`, and it can
 * filter with `account` and `excludeAccount`. No account ID equals this constant, because no ID contains the NUL character.
 */
export const ALL_ACCOUNTS = '\0all accounts';

export function metricsPath(account: string): string {
  return account === ALL_ACCOUNTS ? '/v0/metrics' : `${accountPath(account)}/metrics`;
}

/** Returns the URL path of an account. @throws TypeError for `ALL_ACCOUNTS`, and for names that cannot be part of a URL */
export function accountPath(account: string): string {
  if (account === ALL_ACCOUNTS) throw new TypeError('this call needs one account; only metrics support ALL_ACCOUNTS');
  return `/v0/accounts/${pathSegment(account)}`;
}

export function apiKeysPath(clientId: string): string {
  return `/v0/service_accounts/${pathSegment(clientId)}/api_keys`;
}

/** Encodes a name for a URL path. @throws TypeError for names such as `..`, because the resulting URL would address a different resource */
export function pathSegment(name: string): string {
  if (NO_ACCOUNT_PATH.test(name)) throw new TypeError(`${JSON.stringify(name)} cannot be part of a URL path`);
  return encodeURIComponent(name);
}

/**
 * Returns the query string without the question mark. Omits undefined parameters but sends empty strings.
 * @throws TypeError if a filter is an empty array, because the API would receive no filter and return everything
 */
export function queryString({ groupBy = [], ...others }: MetricsQuery & EventsQuery): string {
  return encoded({ ...others, groupBy: groupBy.join(',') || undefined });
}

type Value = Instant | number | boolean;

/** Encodes query parameters. An array becomes one parameter per element, all with the same name. */
function encoded(parameters: Readonly<Record<string, Value | readonly Value[] | undefined>>): string {
  const sent = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue;
    if (Array.isArray(value) && value.length === 0 && !name.startsWith('exclude'))
      throw new TypeError(`${name} must have at least one value, or be undefined`);
    for (const each of [value].flat()) sent.append(name, each instanceof Date ? each.toISOString() : String(each));
  }
  return sent.toString();
}
