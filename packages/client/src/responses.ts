/** Validates responses. Defines the two errors that a call can throw, apart from the reason of an aborted signal. */
import { errorResponseSchema } from '@meterline/catalog';
import { parseJson, parseRetryAfter, type RejectedEvent, readExactJson, rejectedIn } from '@meterline/catalog/plain';

/** The part of `fetch` that the client uses. It is small, so that a replacement is easy to write. */
export type Fetch = (url: string, init: RequestInit) => Promise<FetchedResponse>;

export type FetchedResponse = Pick<Response, 'ok' | 'status' | 'headers' | 'text'>;

export interface RawResponse {
  readonly response: FetchedResponse;
  readonly text: string;
}

export interface MeterlineErrorFields {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfter?: number | undefined;
}

/** Thrown if the service returns an error or an unexpected response. Programs should branch on `code`; the message is for people. */
export class MeterlineError extends Error {
  override readonly name = 'MeterlineError';
  readonly status: number;
  /**
   * A stable code from the API, such as `invalid_parameter`. The code is `unexpected_response` if the response did not come from the API,
   * for example if a proxy returned an error page.
   */
  readonly code: string;
  /** One object per problem, each with a `message`. */
  readonly details: readonly Readonly<Record<string, string>>[];
  /** The ID to quote to support, or undefined if the response had no ID. */
  readonly requestId: string | undefined;
  /** The number of seconds to wait before a retry, if the service sent Retry-After. */
  readonly retryAfter: number | undefined;

  constructor({ status, code, message, details, requestId, retryAfter }: MeterlineErrorFields, options?: ErrorOptions) {
    super(message, options);
    this.status = status;
    this.code = code;
    this.details = details ?? [];
    this.requestId = requestId;
    this.retryAfter = retryAfter;
  }
}

/** Thrown if there is no response because of a network, DNS, TLS or timeout problem. `cause` is the error of the platform. */
export class MeterlineConnectionError extends Error {
  override readonly name = 'MeterlineConnectionError';
}

/** Creates the error for a response outside 2xx. @param now the current time, needed if Retry-After is a date */
export function errorOfResponse({ status, headers }: FetchedResponse, body: string, now: Date): MeterlineError {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), now);
  const retryAfter = retryAfterMs === undefined ? undefined : retryAfterMs / 1000;
  const known = errorResponseSchema.safeParse(jsonOf(body));
  if (known.success) {
    const { error, message, details, requestId } = known.data;
    return new MeterlineError({ status, code: error, message, details, requestId, retryAfter });
  }
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The response with status ${status} is not from this API; check the address and any proxy in front of it.`;
  return new MeterlineError({ status, code: 'unexpected_response', message, requestId, retryAfter });
}

/** Creates the error for a 2xx response with an invalid body. @param problem such as `data[0].summary.cost: must be a decimal` */
export function unexpectedResponse(
  { status, headers }: FetchedResponse,
  problem: string,
  cause?: unknown,
): MeterlineError {
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The response does not match the schema of this client version (${problem}); check the address.`;
  return new MeterlineError({ status, code: 'unexpected_response', message, requestId }, { cause });
}

function jsonOf(text: string): unknown {
  try {
    return readExactJson(text);
  } catch {
    return undefined;
  }
}

export interface SchemaOf<Value> {
  safeParse(input: unknown): { success: true; data: Value } | { success: false; error: Problem };
}

interface Problem {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** @throws MeterlineError if the body does not match the schema */
export function readResponse<Value>({ response, text }: RawResponse, schema: SchemaOf<Value>): Value {
  let body: unknown;
  try {
    body = readExactJson(text);
  } catch (error) {
    throw unexpectedResponse(response, 'it is not JSON', error);
  }
  const value = schema.safeParse(body);
  if (value.success) return value.data;
  throw unexpectedResponse(response, problemText(value.error), value.error);
}

function problemText({ issues: [first] }: Problem): string {
  if (!first) return 'it is invalid';
  const path = first.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${path.replace(/^\./, '') || 'the body'}: ${first.message}`;
}

/** Status of the response if the collector accepts none of the events. Its body still contains the results of the events. */
export const NO_EVENT_ACCEPTED = 400;

/** The outcome of sending events. All events that are not in `rejected` are durable, except in a trial, which stores no events. */
export interface EventsReceipt {
  readonly accepted: number;
  readonly rejected: readonly RejectedEvent[];
}

/**
 * Reads the results of the events of a request.
 * @param isTrial whether the request only checks the events
 * @throws MeterlineError if the results do not cover all events. It is then unknown which events were accepted.
 */
export function readReceipt({ response, text }: RawResponse, events: number, isTrial: boolean): EventsReceipt {
  const expected = isTrial ? [200] : [202, NO_EVENT_ACCEPTED];
  const body = parseJson(text);
  const rejected = expected.includes(response.status) ? rejectedIn(body, events) : undefined;
  // Look for results before errors, because a response that rejects all events contains both results and an error code.
  if (rejected) return { accepted: events - rejected.length, rejected };
  if (!expected.includes(response.status) || 'error' in Object(body)) throw errorOfResponse(response, text, new Date());
  throw unexpectedResponse(
    response,
    body === undefined ? 'it is not JSON' : 'its counts and results do not cover the events that were sent',
  );
}
