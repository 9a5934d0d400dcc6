/** How much one request may hold, and what is said to one that holds more. */
import { ApiError } from '@meterline/api';
import { MAX_EVENTS_PER_JOB } from '@meterline/catalog';

/** As sent, and again when it is decoded: 5 MiB. */
export const MAX_BODY_BYTES = 5 * 1024 * 1024;
/** All events of a request go into one job, so that they are durable together. */
export const MAX_EVENTS = MAX_EVENTS_PER_JOB;

export function bodyTooLarge(): ApiError {
  const message = `The body may have ${MAX_BODY_BYTES} bytes, as sent and when it is decoded; send fewer events in one request.`;
  return new ApiError(413, 'body_too_large', message);
}

/** How many there are is not known: the rest is not read. */
export function tooManyEvents(): ApiError {
  const message = `A request may hold ${MAX_EVENTS} events, this one has more; send them in several.`;
  return new ApiError(413, 'too_many_events', message);
}

/** @param message a sentence that says what is wrong and what to send */
export function unsupported(message: string, headers: Readonly<Record<string, string>> = {}): ApiError {
  return new ApiError(415, 'unsupported_media_type', message, { headers });
}

export function noEvents(): ApiError {
  return malformedBody(`The body has no events; send 1 to ${MAX_EVENTS}.`);
}

export function notJson(): ApiError {
  return malformedBody('The body must be JSON: an event, or an array of events that has nothing beside it.');
}

export function malformedBody(message: string): ApiError {
  return new ApiError(400, 'invalid_body', message);
}
