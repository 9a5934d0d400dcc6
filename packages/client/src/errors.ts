/** How a call can fail, apart from being aborted: then it fails with the reason of its signal. */
import { errorAnswerSchema, readExactJson } from '@meterline/catalog/api';
import { parseRetryAfter } from './retry.js';

export interface MeterlineErrorFields {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly details?: readonly Readonly<Record<string, string>>[] | undefined;
  readonly requestId?: string | undefined;
  readonly retryAfter?: number | undefined;
}

/** The service answered, and not with what was asked for. Branch on `code`; the message is for people. */
export class MeterlineError extends Error {
  override readonly name = 'MeterlineError';
  /** The HTTP status. */
  readonly status: number;
  /**
   * The API's stable word, such as `invalid_parameter`; `unexpected_answer` for an answer that is not the API's own, such
   * as a proxy's page.
   */
  readonly code: string;
  /** What was wrong, one by one; each has a message. */
  readonly details: readonly Readonly<Record<string, string>>[];
  /** To quote when asking for help; undefined when the answer had none. */
  readonly requestId: string | undefined;
  /** Seconds after which trying again makes sense, as far as the service said so. */
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

/** No answer came: the network, the name, the certificate, the deadline. The cause says which, where the platform does. */
export class MeterlineConnectionError extends Error {
  override readonly name = 'MeterlineConnectionError';
}

/** The error that an answer with a status other than 2xx stands for. @param now for a Retry-After that is a date */
export function errorOfAnswer({ status, headers }: Response, body: string, now: Date): MeterlineError {
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

/** A success whose body is not what the operation answers. */
export function unexpectedAnswer({ status, headers }: Response, cause: unknown): MeterlineError {
  const requestId = headers.get('x-request-id') ?? undefined;
  const message = 'The answer is not of the shape that this version of the client knows; check the address.';
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
