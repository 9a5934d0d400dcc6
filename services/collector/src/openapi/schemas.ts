/** The schemas of bodies and answers, by the names that they have in the document. */
import { protectedResourceSchema, schemaReference } from '@meterline/api';
import {
  BILLING_DIMENSIONS,
  MAX_NAME_LENGTH,
  MAX_REVISION,
  REJECTION_REASONS,
  RESOURCE_TYPES,
} from '@meterline/catalog';
import { errorAnswerSchema } from '@meterline/catalog/api';
import { z } from 'zod';
import { MAX_EVENTS } from '../events/limits.js';
import { CLOUD_EVENT_REASON } from '../events/results.js';

const name = (description: string) => z.string().min(1).max(MAX_NAME_LENGTH).meta({ description });

/** For the document alone: events are checked by the catalog, which says of each what is wrong with it. */
const usageEvent = z.object({
  eventId: name('What identifies the event for ever, within its account and hour. A UUID, or a text that becomes one.'),
  accountId: name('The account in the path. May be left out.').optional(),
  workspace: name('Where it was used.'),
  resourceType: z.enum(RESOURCE_TYPES),
  resourceName: name('What was used.'),
  resourceUuid: name('Which instance of it.').optional(),
  billingDimension: z.enum(BILLING_DIMENSIONS).meta({ description: 'One of those that belong to the type.' }),
  usage: z
    .union([z.number(), z.string()])
    .meta({ description: 'At least 0 and below 10^15. Send more than 15 digits as a string.' }),
  timestamp: z.string().meta({ format: 'date-time', description: 'When it was used: RFC 3339 in UTC.' }),
  revision: z.int().min(0).max(MAX_REVISION).optional().meta({ description: 'The highest one counts. Left out: 0.' }),
  void: z.boolean().optional().meta({ description: 'Takes the event out of every sum.' }),
});

const cloudEvent = z.object({
  specversion: z.literal('1.0'),
  id: name('With the source it becomes the eventId, unless data has one.'),
  source: name('Who has made the event.'),
  type: name('Any; not looked at.'),
  time: z
    .string()
    .optional()
    .meta({ format: 'date-time', description: 'The timestamp, unless data has one. With any offset.' }),
  data: z.record(z.string(), z.unknown()).meta({ description: 'The members of a UsageEvent.' }),
});

const result = z.object({
  index: z.int().min(0).meta({ description: 'The place of the event in the request, from 0 on.' }),
  eventId: z.string().optional().meta({ description: 'As it is kept. Of a refused event, as far as it is known.' }),
  status: z.enum(['accepted', 'refused']),
  reason: z
    .enum([...REJECTION_REASONS, CLOUD_EVENT_REASON])
    .optional()
    .meta({ description: 'Of a refused event: a stable code, that of the ingest worker.' }),
  message: z.string().optional().meta({ description: 'Of a refused event: what is wrong with it.' }),
});

const eventsAnswer = z.object({
  accepted: z.int().min(0),
  refused: z.int().min(0),
  results: z.array(result).meta({ description: 'One for each event of the request, in its order.' }),
});

export const COMPONENTS = {
  UsageEvent: usageEvent,
  UsageEvents: z.array(usageEvent).min(1).max(MAX_EVENTS),
  CloudEvent: cloudEvent,
  CloudEvents: z.array(cloudEvent).min(1).max(MAX_EVENTS),
  EventsAnswer: eventsAnswer,
  EventResult: result,
  NoEventAccepted: eventsAnswer.extend({
    code: z.int(),
    error: z.string(),
    message: z.string(),
    requestId: z.string(),
  }),
  ProtectedResource: protectedResourceSchema,
  Error: errorAnswerSchema,
  Health: z.object({ status: z.enum(['ok', 'ready']) }),
} as const satisfies Record<string, z.core.$ZodType>;

export function reference(component: keyof typeof COMPONENTS) {
  return schemaReference(component);
}
