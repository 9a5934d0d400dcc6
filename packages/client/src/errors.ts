/** The two errors of a call. An aborted call fails with its signal's reason instead. */
import { parseRetryAfter, readExactJson } from '@meterline/catalog/questions';
import type { FetchedAnswer } from './options.js';

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
export async function errorOfAnswer(
  { status, headers }: FetchedAnswer,
  body: string,
  now: Date,
): Promise<MeterlineError> {
  const retryAfterMs = parseRetryAfter(headers.get('retry-after'), now);
  const retryAfter = retryAfterMs === undefined ? undefined : retryAfterMs / 1000;
  const { errorAnswerSchema } = await import('@meterline/catalog/answers');
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
