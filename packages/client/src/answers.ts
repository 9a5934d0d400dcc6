/** What comes back: an answer of a known shape, or one of the two errors of a call. An aborted call fails with its signal's reason instead. */
import { errorAnswerSchema } from '@meterline/catalog';
import { parseJson, parseRetryAfter, type RejectedEvent, readExactJson, rejectedIn } from '@meterline/catalog/plain';

/** What the client asks of `fetch`. Another way to send its requests need know no more. */
export type Fetch = (url: string, init: RequestInit) => Promise<FetchedAnswer>;

/** The part of `Response` that the client reads. */
export type FetchedAnswer = Pick<Response, 'ok' | 'status' | 'headers' | 'text'>;

/** An answer, read to its end. */
export interface RawAnswer {
  readonly response: FetchedAnswer;
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
   * The API's stable word, such as `invalid_parameter`; `unexpected_answer` for an answer that is not the API's own, such
   * as a proxy's page.
   */
  readonly code: string;
  /** One object for each thing that was wrong; each has a message. */
  readonly details: readonly Readonly<Record<string, string>>[];
  /** For support; undefined when the answer had none. */
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

/** No answer came: network, host name, certificate or timeout. The cause says which, if the platform knows. */
export class MeterlineConnectionError extends Error {
  override readonly name = 'MeterlineConnectionError';
}

/** For an answer with a status other than 2xx. @param now for a Retry-After that is a date */
export function errorOfAnswer({ status, headers }: FetchedAnswer, body: string, now: Date): MeterlineError {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), now);
  const retryAfter = retryAfterMs === undefined ? undefined : retryAfterMs / 1000;
  const known = errorAnswerSchema.safeParse(jsonOf(body));
  if (known.success) {
    const { error, message, details, requestId } = known.data;
    return new MeterlineError({ status, code: error, message, details, requestId, retryAfter });
  }
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The answer with status ${status} is not one of this API; check the address and what stands before it.`;
  return new MeterlineError({ status, code: 'unexpected_answer', message, requestId, retryAfter });
}

/** For a success with a body of the wrong shape. @param fault such as `data[0].summary.cost: must be a decimal` */
export function unexpectedAnswer({ status, headers }: FetchedAnswer, fault: string, cause?: unknown): MeterlineError {
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = `The answer is not of the shape that this version of the client knows (${fault}); check the address.`;
  return new MeterlineError({ status, code: 'unexpected_answer', message, requestId }, { cause });
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
  safeParse(input: unknown): { success: true; data: Value } | { success: false; error: Fault };
}

/** The part of zod's error that the client shows. */
interface Fault {
  readonly issues: readonly { readonly path: readonly PropertyKey[]; readonly message: string }[];
}

/** @throws MeterlineError when the body does not match the schema */
export function readAnswer<Value>({ response, text }: RawAnswer, schema: SchemaOf<Value>): Value {
  let body: unknown;
  try {
    body = readExactJson(text);
  } catch (error) {
    throw unexpectedAnswer(response, 'it is not JSON', error);
  }
  const value = schema.safeParse(body);
  if (value.success) return value.data;
  throw unexpectedAnswer(response, faultText(value.error), value.error);
}

/** The first fault: `data[0].summary.cost: must be a decimal`. */
function faultText({ issues: [first] }: Fault): string {
  if (!first) return 'it has another form';
  const place = first.path.map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return `${place.replace(/^\./, '') || 'the whole'}: ${first.message}`;
}

/** The status of a request of which no event was accepted; it has results all the same. */
export const NO_EVENT_ACCEPTED = 400;

/** Those that are not rejected are accepted: Meterline is responsible for them. */
export interface EventsReceipt {
  readonly accepted: number;
  readonly rejected: readonly RejectedEvent[];
}

/**
 * @param isTrial whether the events were to be checked only
 * @throws MeterlineError for a response that does not account for each of the events: nothing is known then
 */
export function readReceipt({ response, text }: RawAnswer, events: number, isTrial: boolean): EventsReceipt {
  const expected = isTrial ? [200] : [202, NO_EVENT_ACCEPTED];
  const body = parseJson(text);
  if (!expected.includes(response.status) || 'error' in Object(body)) throw errorOfAnswer(response, text, new Date());
  const rejected = rejectedIn(body, events);
  if (!rejected) {
    throw unexpectedAnswer(response, body === undefined ? 'it is not JSON' : 'not every event has a result');
  }
  return { accepted: events - rejected.length, rejected };
}
