/** Sends one request, with its retries. */
import { parseRetryAfter } from '@meterline/catalog/questions';
import { errorOfAnswer, MeterlineConnectionError } from './errors.js';
import type { Fetch, FetchedAnswer } from './options.js';
import { isRetriedStatus, pause, waitBeforeRetry } from './retry.js';

export interface TransportOptions {
  /** Without a slash at its end. */
  readonly baseUrl: string;
  readonly credential: () => string | Promise<string>;
  readonly apiVersion: string;
  readonly fetch: Fetch;
  /** Attempts after the first. */
  readonly retries: number;
  /** Milliseconds for one attempt, its body included. */
  readonly timeout: number;
}

export interface Call {
  readonly method: 'GET' | 'POST' | 'DELETE';
  /** From `/v0` on, with its query. */
  readonly path: string;
  /** Sent as JSON; undefined: there is none. */
  readonly body?: unknown;
  readonly signal: AbortSignal | undefined;
}

/** A successful answer, read to its end. */
export interface RawAnswer {
  readonly response: FetchedAnswer;
  readonly text: string;
}

export class Transport {
  readonly #options: TransportOptions;

  constructor(options: TransportOptions) {
    this.#options = options;
  }

  /**
   * @throws MeterlineError for an answer other than 2xx
   * @throws MeterlineConnectionError when no answer came
   * @throws the signal's reason once it is aborted
   */
  async send(call: Call): Promise<RawAnswer> {
    for (let attempt = 0; ; attempt += 1) {
      const outcome = await this.#attempt(call);
      if ('text' in outcome && outcome.response.ok) return outcome;
      const wait = attempt < this.#options.retries ? waitAfter(outcome, call, attempt) : undefined;
      if (wait === undefined) throw await failureOf(outcome);
      await pause(wait, call.signal);
    }
  }

  async #attempt({ method, path, body, signal }: Call): Promise<RawAnswer | MeterlineConnectionError> {
    const { apiVersion, baseUrl, timeout } = this.#options;
    signal?.throwIfAborted();
    const credential = await this.#options.credential();
    const headers = {
      Accept: 'application/json',
      Authorization: `Bearer ${credential}`,
      'Svc-Version': apiVersion,
      ...(body !== undefined && { 'Content-Type': 'application/json' }),
    };
    const deadline = AbortSignal.timeout(timeout);
    try {
      const response = await this.#options.fetch(`${baseUrl}${path}`, {
        method,
        headers,
        ...(body !== undefined && { body: JSON.stringify(body) }),
        cache: 'no-store',
        credentials: 'omit',
        signal: signal ? AbortSignal.any([signal, deadline]) : deadline,
      });
      return { response, text: await response.text() };
    } catch (cause) {
      signal?.throwIfAborted();
      const failure = deadline.aborted ? `did not answer within ${timeout / 1000} s` : 'cannot be reached';
      return new MeterlineConnectionError(`The API at ${baseUrl} ${failure}.`, { cause });
    }
  }
}

/** Undefined when another attempt makes no sense. */
function waitAfter(
  outcome: RawAnswer | MeterlineConnectionError,
  { method }: Call,
  attempt: number,
): number | undefined {
  if (outcome instanceof MeterlineConnectionError) {
    return method === 'GET' ? waitBeforeRetry(attempt, undefined, Math.random()) : undefined;
  }
  const { headers, status } = outcome.response;
  if (!isRetriedStatus(status)) return undefined;
  return waitBeforeRetry(attempt, parseRetryAfter(headers.get('retry-after'), new Date()), Math.random());
}

async function failureOf(outcome: RawAnswer | MeterlineConnectionError): Promise<Error> {
  if (outcome instanceof MeterlineConnectionError) return outcome;
  return errorOfAnswer(outcome.response, outcome.text, new Date());
}
