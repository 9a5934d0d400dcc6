/** Defines the OpenAPI document of the collector. The tests send the examples of this document to a server. */
import {
  COMMON_ERRORS,
  COMMON_SCHEMAS,
  commonOperations,
  type ErrorSketch,
  headerReference,
  LIMIT_HEADERS,
  noTokens,
  type OpenApiDocument,
  type OperationSketch,
  openApiDocument,
  schemaReference,
  senderRequired,
  tooManyRequests,
} from '@meterline/api';
import {
  BUILT_IN_DIMENSION_NAMES,
  BUILT_IN_RESOURCE_TYPES,
  EXTENSIBLE,
  errorResponseSchema,
  MAX_EVENTS_PER_JOB,
  MAX_NAME_LENGTH,
  MAX_REVISION,
} from '@meterline/catalog';
import { z } from 'zod';
import { cloudEventSchema, EVENT_ID_NAMESPACE, resultSchema } from '../events/check.js';
import { MEDIA_TYPES, tooManyEvents, unsupported } from '../events/formats.js';
import { EVENTS_PARAMETERS, noEventAccepted, queueUnavailable } from '../events/route.js';

const DESCRIPTION = `**Credentials.** Send an API key with the role \`emitter\` as \`Authorization: Bearer …\` or \`X-Svc-Authorization: Bearer …\`. Such a key
may only send events; keys of other roles may not send events. An OAuth2 access token needs the scope \`admin\`, and its subject must be
an admin of the accounts, or have the role \`emitter\`.

**Accounts.** With a key or token for one account, \`accountId\` may be left out. With a key or token for several accounts, or for all, each event
needs an \`accountId\`. An event of an account that the caller may not send for is rejected; this does not affect the other events of the request.

**Retries.** A response with \`results\` is a receipt: every event is accepted except the events in \`results\`. Correct these and send them again.
Any other response leaves the outcome open: send the same events again, with the same IDs. Retries are safe at any time, because an event
counts once per ID. The header \`Idempotency-Key\` is therefore ignored.

**IDs.** An \`eventId\` that is not a UUID is replaced by a UUID of version 5. Its namespace is \`${EVENT_ID_NAMESPACE}\`, and its
name is the JSON array \`["accountId","eventId"]\` without spaces; for a CloudEvent, \`["accountId","source","id"]\`. The same ID always gives the same UUID.

**Errors** are \`{code, error, message, details?, requestId}\`. Branch on \`error\`; \`message\` says how to fix the request.`;

const name = (description: string) => z.string().min(1).max(MAX_NAME_LENGTH).meta({ description });

const builtIn = (description: string, examples: readonly string[]) =>
  z.string().meta({ description: `${description} ${EXTENSIBLE}`, examples: [...examples] });

/** Only documents the fields. The checks of the catalog validate events, because they return codes and better messages. */
const usageEvent = z.object({
  eventId: name('Identifies the event within its account and hour. A UUID, or a text that is replaced by a UUID.'),
  accountId: name('Account to charge. May be left out if the key or token sends for one account.').optional(),
  workspace: name('Workspace that used the resource.'),
  resourceType: builtIn('Type of the resource.', BUILT_IN_RESOURCE_TYPES),
  resourceName: name('Name of the resource.'),
  resourceUuid: name('ID of the instance of the resource.').optional(),
  billingDimension: builtIn('A dimension of the resource type.', BUILT_IN_DIMENSION_NAMES),
  usage: z.union([z.number(), z.string()]).meta({
    description:
      'At least 0 and below 10^15. The first 9 decimals are kept, and further digits are rounded half-even. Send a string if your JSON ' +
      'library would round the number.',
  }),
  timestamp: z.string().meta({ format: 'date-time', description: 'Time of the usage: RFC 3339 in UTC.' }),
  revision: z
    .int()
    .min(0)
    .max(MAX_REVISION)
    .optional()
    .meta({ description: 'The highest revision of an event counts (default: 0).' }),
  void: z.boolean().optional().meta({ description: 'Excludes the event from all sums.' }),
});

const eventsResponse = z.object({
  accepted: z.int().min(0),
  rejected: z.int().min(0),
  results: z
    .array(resultSchema)
    .meta({ description: 'One entry for each rejected event, in the order of the request.' }),
});

const SCHEMAS = {
  UsageEvent: usageEvent,
  UsageEvents: z.array(usageEvent).min(1).max(MAX_EVENTS_PER_JOB),
  CloudEvent: cloudEventSchema,
  CloudEvents: z.array(cloudEventSchema).min(1).max(MAX_EVENTS_PER_JOB),
  EventsResponse: eventsResponse,
  EventResult: resultSchema,
  NoEventAccepted: z.object({ ...eventsResponse.shape, ...errorResponseSchema.shape }).omit({ details: true }),
  Error: errorResponseSchema,
  ...COMMON_SCHEMAS,
};

const ERRORS: Readonly<Record<string, ErrorSketch>> = {
  ...COMMON_ERRORS,
  BadRequest: {
    description:
      'None of the events can be accepted (`no_event_accepted`, with `results`), the body is not what its Content-Type ' +
      'says (`invalid_body`), a parameter is unknown (`invalid_parameter`), the version does not exist (`invalid_api_version`), or ' +
      'two credentials contradict each other (`conflicting_credentials`).',
    schema: { anyOf: [schemaReference('NoEventAccepted'), schemaReference('Error')] },
    error: noEventAccepted(),
    members: {
      accepted: 0,
      rejected: 1,
      results: [
        { index: 0, status: 'rejected', reason: 'event_not_an_object', message: 'an event must be a JSON object' },
      ],
    },
  },
  Forbidden: {
    description:
      'The key or token may not send events of any account (`forbidden`), or the token lacks the scope (`insufficient_scope`).',
    error: senderRequired(),
  },
  NotFound: {
    description: 'The service is not configured to accept tokens.',
    error: noTokens(),
  },
  TooLarge: {
    description: 'The body has too many bytes (`body_too_large`) or too many events (`too_many_events`).',
    error: tooManyEvents(),
  },
  Unsupported: {
    description: 'The format or encoding of the body is not supported.',
    error: unsupported('Content-Encoding may be gzip, zstd or left out.'),
  },
  TooMany: {
    description:
      'The account or the caller sends more requests than allowed (`too_many_requests`), or has too many bytes in flight ' +
      '(`too_many_bytes_in_flight`).',
    error: tooManyRequests('You may send 2000 requests in 2 seconds', 2),
  },
  Unavailable: {
    description:
      'The queue is unreachable, full or slow (`queue_unavailable`), credentials cannot be checked (`auth_unavailable`), or too many ' +
      'requests are being received (`server_busy`). Send the same events again after Retry-After.',
    error: queueUnavailable(),
  },
};

const EVENT = {
  eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_compute_runtime_gbs',
  usage: 12.5,
  timestamp: '2025-10-02T09:00:00Z',
};

const { eventId: _eventId, timestamp, ...DATA } = EVENT;

const CLOUD_EVENT = {
  specversion: '1.0',
  id: 'run-4711',
  source: '/agents/support',
  type: 'meterline.usage',
  time: timestamp,
  data: DATA,
};

const LINES = [EVENT, { ...EVENT, eventId: 'run-4712' }].map((event) => JSON.stringify(event)).join('\n');

const SEND_EVENTS: OperationSketch = {
  method: 'post',
  path: '/v0/events',
  operationId: 'sendEvents',
  tag: 'Events',
  summary: 'Send events',
  description:
    'Receives up to 5,000 events in up to 5 MiB, both as sent and decoded; `Content-Encoding` may be `gzip` or `zstd`. A JSON body is an ' +
    'array of events, one event, or the data of a job, `{"events": […]}`. A CloudEvent in ' +
    'binary mode has its attributes in `ce-` headers and its data in the body. The JSON of one event may have at most 256 values.\n\n' +
    'A 202 confirms that the accepted events are durable in the queue: they cannot get lost, and each event counts once. A rejected ' +
    'event does not affect the other events. It is not stored: correct it and send it again. If no event is accepted, the response is ' +
    'a 400 with `results`. With `validate=only` the events are only checked: the response is a 200 with `results`, and nothing is kept.\n\n' +
    'On this page, Execute stores the events of the example as real usage, unless `validate` is `only`.',
  isExtension: true,
  query: EVENTS_PARAMETERS,
  body: ['UsageEvents', 'UsageEvent'],
  otherFormats: {
    [MEDIA_TYPES.ndjson]: {
      schema: { type: 'string', description: 'One UsageEvent per line.' },
      example: LINES,
    },
    [MEDIA_TYPES.cloudEvent]: { schema: schemaReference('CloudEvent'), example: CLOUD_EVENT },
    [MEDIA_TYPES.cloudEventBatch]: { schema: schemaReference('CloudEvents'), example: [CLOUD_EVENT] },
  },
  success: { status: '202', description: 'The accepted events are durable.', schemas: ['EventsResponse'] },
  otherResponses: {
    '200': {
      description: 'With `validate=only`: the events were checked, and nothing is kept.',
      headers: { ...headerReference('X-Request-Id'), ...LIMIT_HEADERS },
      content: { 'application/json': { schema: schemaReference('EventsResponse') } },
    },
  },
  examples: {
    accepted: { summary: 'One event', body: [EVENT], response: { accepted: 1, rejected: 0, results: [] } },
    partly: {
      summary: 'One accepted and one rejected event',
      body: [EVENT, { ...EVENT, eventId: 'run-4711', usage: -1 }],
      response: {
        accepted: 1,
        rejected: 1,
        results: [
          {
            index: 1,
            eventId: 'run-4711',
            status: 'rejected',
            reason: 'invalid_usage',
            message:
              'usage must be a number or decimal string, at least 0 and below 10^15, without an exponent (got -1)',
          },
        ],
      },
    },
  },
  errors: ['BadRequest', 'Unauthorized', 'Forbidden', 'TooLarge', 'Unsupported', 'TooMany', 'Unavailable'],
};

export function createOpenApiDocument(): OpenApiDocument {
  return openApiDocument({
    title: 'Meterline collector',
    summary: 'Receives usage events, and responds once they are durable.',
    description: DESCRIPTION,
    tags: [
      { name: 'Events', description: 'Usage events.' },
      { name: 'Access', description: 'Access tokens.' },
      { name: 'Health', description: 'Health checks for load balancers and supervisors, without credentials.' },
    ],
    operations: [
      SEND_EVENTS,
      ...commonOperations({
        summary: 'Check whether the collector can accept events',
        description:
          'Checks within three seconds that Redis is reachable, durable and evicts nothing. Returns 503 as well while the process stops, for load balancers.',
        examples: { ready: { summary: 'Redis is ready', response: { status: 'ready' } } },
      }),
    ],
    schemas: SCHEMAS,
    errors: ERRORS,
  });
}
