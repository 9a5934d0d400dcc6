/** Validates responses, and defines the two errors that a call can throw besides the reason of its aborted signal. */
import { errorResponseSchema } from '@meterline/catalog';
import { parseJson, parseRetryAfter, type RejectedEvent, readExactJson, rejectedIn } from '@meterline/catalog/plain';

/** The subset of `fetch` that the client calls, so that a replacement is easy to write. */
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

/** The service returned an error or an unexpected response. Branch on `code`; the message is for people. */
export class MeterlineError extends Error {
  override readonly name = 'MeterlineError';
  readonly status: number;
  /**
   * A stable code from the API, such as `invalid_parameter`. `unexpected_response` if the API did not send the response, for
   * example an error page of a proxy.
   */
  readonly code: string;
  /** One object per problem, each with a `message`. */
  readonly details: readonly Readonly<Record<string, string>>[];
  /** Quote this to support. Undefined if the response had no ID. */
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

/** No response: a network, DNS, TLS or timeout problem. `cause` has the platform's error. */
export class MeterlineConnectionError extends Error {
  override readonly name = 'MeterlineConnectionError';
}

/** Creates the error for a response outside 2xx. @param now needed if Retry-After is a date */
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

/** The part of a zod schema that the client uses. */
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

/** Status of a response that accepts no event. Its body is a receipt nevertheless. */
export const NO_EVENT_ACCEPTED = 400;

/** The outcome of a request. All events that are not rejected are durable. */
export interface EventsReceipt {
  readonly accepted: number;
  readonly rejected: readonly RejectedEvent[];
}

/**
 * @param isTrial whether the request only checks the events
 * @throws MeterlineError if the response does not cover all events, so that it is unknown which events were accepted
 */
export function readReceipt({ response, text }: RawResponse, events: number, isTrial: boolean): EventsReceipt {
  const expected = isTrial ? [200] : [202, NO_EVENT_ACCEPTED];
  const body = parseJson(text);
  const rejected = expected.includes(response.status) ? rejectedIn(body, events) : undefined;
  // Checked after the receipt, because a receipt that rejects all events has an error code as well.
  if (rejected) return { accepted: events - rejected.length, rejected };
  if (!expected.includes(response.status) || 'error' in Object(body)) throw errorOfResponse(response, text, new Date());
  throw unexpectedResponse(
    response,
    body === undefined ? 'it is not JSON' : 'its counts and results do not cover the events that were sent',
  );
}
