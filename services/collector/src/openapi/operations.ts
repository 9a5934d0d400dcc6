/** Every operation of the collector. */
import {
  type Examples,
  healthOperation,
  type OperationSketch,
  resourceMetadataOperation,
  responseReference,
} from '@meterline/api';
import { MEDIA_TYPES } from '../events/formats.js';
import { EVENTS_PARAMETERS } from '../events/route.js';
import { errorReference } from './responses.js';
import { reference } from './schemas.js';

const PUBLIC_ERRORS = { default: errorReference('Other') };

const EVENT = {
  eventId: '01999f3c-2a00-7c31-9d5e-0b6f1e2d3c4b',
  workspace: 'production',
  resourceType: 'agent',
  resourceName: 'support',
  billingDimension: 'agent_compute_runtime_gbs',
  usage: 12.5,
  timestamp: '2025-10-02T09:00:00Z',
};

const EVENTS_EXAMPLES: Examples = {
  accepted: {
    summary: 'Two events, one of which is refused',
    parameters: { accountId: 'acme' },
    body: [EVENT, { ...EVENT, eventId: 'run-4711', usage: -1 }],
    answer: {
      accepted: 1,
      refused: 1,
      results: [
        { index: 0, eventId: EVENT.eventId, status: 'accepted' },
        {
          index: 1,
          eventId: '48bb1770-de5d-50a4-b30b-f6939f1d2208',
          status: 'refused',
          reason: 'invalid_usage',
          message: 'usage must be a number or decimal string, at least 0 and below 10^15, without an exponent',
        },
      ],
    },
  },
};

export const OPERATIONS: readonly OperationSketch[] = [
  {
    path: '/v0/accounts/{accountId}/events',
    method: 'post',
    operationId: 'sendEvents',
    tag: 'Events',
    summary: 'Send events',
    description:
      'Takes up to 5,000 events in up to 5 MiB, as sent and when decoded; `Content-Encoding` may be `gzip` or `zstd`. In JSON they are an ' +
      'array, one event, or the data of a job, `{"events": […]}`. A CloudEvent in ' +
      'binary mode has its attributes in `ce-` headers and its data as the body.\n\n' +
      'A 202 says that the accepted events are durable in the queue: none is lost from then on, and each counts once. A refused ' +
      'event never spoils its neighbours, and is not kept: correct it and send it again. Where none can be accepted, the answer is ' +
      'a 400 with the same results. With `validate=only` the answer is a 200 with the results, and nothing is kept.',
    isExtension: true,
    query: EVENTS_PARAMETERS,
    body: { oneOf: [reference('UsageEvents'), reference('UsageEvent')] },
    otherFormats: {
      [MEDIA_TYPES.ndjson]: { type: 'string', description: 'A UsageEvent in each line.' },
      [MEDIA_TYPES.cloudEvent]: reference('CloudEvent'),
      [MEDIA_TYPES.cloudEventBatch]: reference('CloudEvents'),
    },
    success: {
      status: '202',
      description: 'The accepted events are durable.',
      schema: reference('EventsAnswer'),
    },
    examples: EVENTS_EXAMPLES,
    errors: {
      '200': responseReference('Checked'),
      '400': errorReference('BadRequest'),
      '401': errorReference('Unauthorized'),
      '403': errorReference('Forbidden'),
      '413': errorReference('TooLarge'),
      '415': errorReference('Unsupported'),
      '429': errorReference('TooMany'),
      '503': errorReference('Unavailable'),
      default: errorReference('Other'),
    },
  },
  resourceMetadataOperation({ ...PUBLIC_ERRORS, '404': errorReference('NotFound') }),
  healthOperation(PUBLIC_ERRORS),
  {
    path: '/readyz',
    method: 'get',
    operationId: 'getReadiness',
    tag: 'Health',
    summary: 'Can events be taken?',
    description:
      'Asks Redis, whether it is durable too, and waits three seconds at most. 503 too while the process stops, for load balancers.',
    success: { description: 'They can.', schema: reference('Health') },
    examples: { ready: { summary: 'Redis answers', parameters: {}, answer: { status: 'ready' } } },
    errors: { ...PUBLIC_ERRORS, '503': errorReference('NotReady') },
  },
];
