/** What comes back: a response of a known shape, or one of the two errors of a call. An aborted call fails with its signal's reason instead. */
import { errorResponseSchema } from '@meterline/catalog';
import { parseJson, parseRetryAfter, type RejectedEvent, readExactJson, rejectedIn } from '@meterline/catalog/plain';

/** What the client asks of `fetch`. Another way to send its requests need know no more. */
export type Fetch = (url: string, init: RequestInit) => Promise<FetchedResponse>;

/** The part of `Response` that the client reads. */
export type FetchedResponse = Pick<Response, 'ok' | 'status' | 'headers' | 'text'>;

/** A response, read to its end. */
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

/** The service answered with an error, or with something unexpected. Branch on `code`; the message is for people. */
export class MeterlineError extends Error {
  override readonly name = 'MeterlineError';
  /** The HTTP status. */
  readonly status: number;
  /**
   * The API's stable word, such as `invalid_parameter`; `unexpected_response` for a response that is not the API's own, such
   * as a proxy's page.
   */
  readonly code: string;
  /** One object for each thing that was wrong; each has a message. */
  readonly details: readonly Readonly<Record<string, string>>[];
  /** For support; undefined when the response had none. */
  readonly requestId: string | undefined;
  /** Seconds to wait before trying again, if the service said so. */
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

/** No response came: network, host name, certificate or timeout. The cause says which, if the platform knows. */
export class MeterlineConnectionError extends Error {
  override readonly name = 'MeterlineConnectionError';
}

/** For a response with a status other than 2xx. @param now for a Retry-After that is a date */
export function errorOfResponse({ status, headers }: FetchedResponse, body: string, now: Date): MeterlineError {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), now);
  const retryAfter = retryAfterMs === undefined ? undefined : retryAfterMs / 1000;
  const known = errorResponseSchema.safeParse(jsonOf(body));
  if (known.success) {
    const { error, message, details, requestId } = known.data;
    return new MeterlineError({ status, code: error, message, details, requestId, retryAfter });
  }
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The response with status ${status} is not one of this API; check the address and what stands before it.`;
  return new MeterlineError({ status, code: 'unexpected_response', message, requestId, retryAfter });
}

/** For a success with a body of the wrong shape. @param problem what is wrong, such as `data[0].summary.cost: must be a decimal` */
export function unexpectedResponse(
  { status, headers }: FetchedResponse,
  problem: string,
  cause?: unknown,
): MeterlineError {
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The response is not of the shape that this version of the client knows (${problem}); check the address.`;
  return new MeterlineError({ status, code: 'unexpected_response', message, requestId }, { cause });
}

/** Undefined for a text that is not JSON. */
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

/** The part of zod's error that the client shows. */
interface Problem {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** @throws MeterlineError when the body does not match the schema */
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

/** The first error: `data[0].summary.cost: must be a decimal`. */
function problemText({ issues: [first] }: Problem): string {
  if (!first) return 'it has another form';
  const place = first.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${place.replace(/^\./, '') || 'the whole'}: ${first.message}`;
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
