/** The responses of the collector but for those that an operation describes itself; each error has an example. */
import { errorResponse, headerReference, LIMIT_HEADERS, type OpenApiResponse, responseReference } from '@meterline/api';
import { reference } from './schemas.js';

const RETRY = { 'Retry-After': headerReference('Retry-After') };

const noEventAccepted = {
  code: 400,
  error: 'no_event_accepted',
  message: 'No event was accepted; results says for each what is wrong with it.',
  accepted: 0,
  refused: 1,
  results: [{ index: 0, status: 'refused', reason: 'event_not_an_object', message: 'an event must be a JSON object' }],
  requestId: '7f0c1a52-3a8e-4c1d-9a2b-5d0f6e7a8b9c',
};

/** With `validate=only`. */
const CHECKED: OpenApiResponse = {
  description: 'The events were checked, as `validate=only` asks, and none is kept.',
  headers: { 'X-Request-Id': headerReference('X-Request-Id'), ...LIMIT_HEADERS },
  content: { 'application/json': { schema: reference('EventsAnswer') } },
};

export const RESPONSES = {
  Checked: CHECKED,
  BadRequest: {
    description:
      'None of the events can be accepted (`no_event_accepted`, with a result for each), the body is not what its Content-Type ' +
      'says (`invalid_body`), a parameter is unknown (`invalid_parameter`), the version does not exist (`invalid_api_version`), or ' +
      'two credentials contradict each other (`conflicting_credentials`).',
    headers: { 'X-Request-Id': headerReference('X-Request-Id') },
    content: {
      'application/json': {
        schema: { anyOf: [reference('NoEventAccepted'), reference('Error')] },
        examples: { no_event_accepted: { summary: noEventAccepted.message, value: noEventAccepted } },
      },
    },
  },
  Forbidden: errorResponse(
    'The account is not the caller’s, or does not exist; the key or the member may read and not send (`forbidden`); or the token ' +
      'lacks the scope (`insufficient_scope`).',
    {},
    { code: 403, error: 'forbidden', message: 'Access denied' },
  ),
  NotFound: errorResponse(
    'The service accepts no tokens.',
    {},
    {
      code: 404,
      error: 'not_found',
      message: 'This service accepts no OAuth2 tokens; ask an admin of the account for an API key.',
    },
  ),
  TooLarge: errorResponse(
    'The body is over a limit: its bytes or the values in its JSON (`body_too_large`), or its events (`too_many_events`).',
    {},
    {
      code: 413,
      error: 'too_many_events',
      message: 'A request may hold 5000 events, this one has more; send them in several.',
    },
  ),
  Unsupported: errorResponse(
    'The body has a format or an encoding that is not taken.',
    {},
    {
      code: 415,
      error: 'unsupported_media_type',
      message: 'Content-Encoding may be gzip, zstd or left out.',
    },
  ),
  TooMany: errorResponse(
    'The account or the caller sends more requests than it may (`too_many_requests`), or too much of it is under way at once ' +
      '(`too_much_under_way`).',
    { ...RETRY, ...LIMIT_HEADERS },
    {
      code: 429,
      error: 'too_many_requests',
      message: 'You may send 1000 requests a second, and 2000 at once after a rest; wait as long as Retry-After says.',
    },
  ),
  Unavailable: errorResponse(
    'The queue is away, full or slow (`queue_unavailable`), credentials cannot be checked (`auth_unavailable`), or too much is being ' +
      'received (`server_busy`). Send the same events again after Retry-After.',
    RETRY,
    {
      code: 503,
      error: 'queue_unavailable',
      message:
        'Events cannot be made durable at the moment; send the same ones again shortly, with the same ids: none counts twice.',
    },
  ),
} as const satisfies Record<string, OpenApiResponse>;

export function errorReference(
  name: keyof typeof RESPONSES | 'Unauthorized' | 'NotReady' | 'Other',
): ReturnType<typeof responseReference> {
  return responseReference(name);
}
