/** The errors that a request for events may be answered with, beside those of its body. */
import { ApiError, unavailable } from '@meterline/api';

/** No event of the request can be accepted. The body has the results as well. */
export function noEventAccepted(): ApiError {
  const message = 'No event was accepted; results says for each what is wrong with it.';
  return new ApiError(400, 'no_event_accepted', message);
}

/** Not accepted, or not known to be. */
export function queueUnavailable(cause: unknown): ApiError {
  const message =
    'Events cannot be made durable at the moment; send the same ones again shortly, with the same ids: none counts twice.';
  return unavailable('queue_unavailable', message, cause);
}
