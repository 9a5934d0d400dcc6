/**
 * Checks the events of a request with the rules of the ingest worker, after filling in missing account IDs and UUIDs.
 *
 * The `data` of a CloudEvent is the usage event. If the usage event has no eventId, the eventId is derived from the `source` and `id` of
 * the envelope. If it has no timestamp, the envelope's `time` is the timestamp. `subject` is ignored (docs/decisions/0025).
 * Source: CloudEvents 1.0.2, JSON event format and HTTP protocol binding.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  ANY_UUID,
  type EpochMs,
  formatTimestamp,
  invalidSentId,
  isName,
  isRecord,
  isUuid,
  MAX_NAME_LENGTH,
  NOT_ALLOWED,
  type PriceBook,
  parsePricedEvent,
  parseTimestamp,
  quoted,
  REJECTION_REASONS,
  type RejectionReason,
  rejected,
} from '@meterline/catalog';
import { v5 } from 'uuid';
import { z } from 'zod';

/** The reason of a malformed CloudEvent. All other reasons are defined in the catalog. */
export const CLOUD_EVENT_REASON = 'invalid_cloud_event';
type Reason = RejectionReason | typeof CLOUD_EVENT_REASON | typeof NOT_ALLOWED;

/** Rejection of an event that is not a readable usage event, or whose account the caller may not send for. */
export class Unreadable {
  constructor(
    readonly reason: Reason,
    readonly message: string,
  ) {}
}

function attribute(
  name: string,
  description: string,
  rule = `a string of 1 to ${MAX_NAME_LENGTH} characters without control characters`,
) {
  const error = `${name} must be ${rule}`;
  return z.string(error).refine(isName, error).meta({ minLength: 1, maxLength: MAX_NAME_LENGTH, description });
}

export const cloudEventSchema = z.object(
  {
    specversion: z.literal('1.0', 'specversion must be "1.0"'),
    id: attribute('id', 'Together with source, it determines the eventId if data has none.'),
    source: attribute('source', 'The producer of the event.'),
    type: attribute('type', 'Any value; ignored.', 'a string, such as "meterline.usage"'),
    time: z
      .string('time must be a string')
      .optional()
      .meta({ format: 'date-time', description: 'The timestamp if data has none. Any UTC offset is allowed.' }),
    data: z
      .custom<Readonly<Record<string, unknown>>>(isRecord, 'data must be the usage event, a JSON object')
      .meta({ type: 'object', additionalProperties: {}, description: 'The fields of a UsageEvent.' }),
  },
  'a CloudEvent must be a JSON object',
);

/** Returns the usage event in a CloudEvent in the JSON event format. The result has no eventId if its account is unknown. */
export function openCloudEvent(
  envelope: unknown,
  defaultAccount: string | undefined,
): Record<string, unknown> | Unreadable {
  const { data: opened, error } = cloudEventSchema.safeParse(envelope);
  const isBase64 = isRecord(envelope) && 'data_base64' in envelope;
  const problems = (error?.issues ?? []).flatMap(({ path, message }) =>
    isBase64 && path[0] === 'data' ? [] : message,
  );
  if (isBase64) problems.push('data_base64 is not supported; send the event as JSON in data');
  if (!opened || problems.length > 0) return new Unreadable(CLOUD_EVENT_REASON, problems.join('; '));
  const { data, id, source, time } = opened;
  const account = data['accountId'] ?? defaultAccount;
  return {
    ...data,
    eventId: data['eventId'] ?? (typeof account === 'string' ? eventIdOfCloudEvent(account, source, id) : undefined),
    ...(data['timestamp'] === undefined && time !== undefined && { timestamp: inUtc(time) }),
  };
}

/** Returns whether the request is a CloudEvent in binary mode, which has the attributes in headers and the data in the body. */
export function isBinaryCloudEvent(headers: IncomingHttpHeaders): boolean {
  return headers['ce-specversion'] !== undefined || headers['ce-id'] !== undefined;
}

/** Converts a CloudEvent in binary mode to the JSON event format. */
export function envelopeOf(headers: IncomingHttpHeaders, data: unknown): Record<string, unknown> | Unreadable {
  const envelope: Record<string, unknown> = { data };
  for (const name of ['specversion', 'id', 'source', 'type', 'time']) {
    const value = headers[`ce-${name}`];
    if (typeof value !== 'string') continue;
    const text = decoded(unquoted(value));
    if (text === undefined) return new Unreadable(CLOUD_EVENT_REASON, `the header ce-${name} ${HEADER_RULE}`);
    envelope[name] = text;
  }
  return envelope;
}

const HEADER_RULE =
  'must be ASCII; percent-encode all other characters in UTF-8, such as %C3%BC for ü, and a percent sign as %25';

const QUOTED = /^"((?:[^"\\]|\\.)*)"$/;

/**
 * Removes the quotes of a header value. Earlier releases of CloudEvents quoted values with spaces.
 * Source: HTTP protocol binding, section 3.1.3.2, and RFC 9110, section 5.6.4.
 */
function unquoted(value: string): string {
  return QUOTED.exec(value)?.[1]?.replace(/\\(.)/g, '$1') ?? value;
}

const PRINTABLE_ASCII = /^[ -~]*$/;

/**
 * Decodes a percent-encoded header value. Returns undefined if a character is not printable ASCII, or if the result is not valid UTF-8.
 * Source: HTTP protocol binding, section 3.1.3.2.
 */
function decoded(value: string): string | undefined {
  if (!PRINTABLE_ASCII.test(value)) return undefined;
  try {
    return decodeURIComponent(value);
  } catch {
    return undefined;
  }
}

const MS_PER_MINUTE = 60_000;
const WITH_OFFSET = /^(.+)([+-])([01]\d|2[0-3]):([0-5]\d)$/;

/** Converts a time with any offset to UTC. Returns an invalid time unchanged, because the check of the event rejects it later. */
function inUtc(time: string): string {
  const [, local = '', sign, hours, minutes] = WITH_OFFSET.exec(time) ?? [];
  const instant = parseTimestamp(`${local}Z`);
  if (instant === undefined || parseTimestamp(time) !== undefined) return time;
  const offset = (Number(hours) * 60 + Number(minutes)) * MS_PER_MINUTE;
  return formatTimestamp(sign === '-' ? instant + offset : instant - offset);
}

/**
 * Namespace for deriving UUIDs from event IDs that are not UUIDs. It must never change: a UUID identifies an event, so every release must
 * derive the same UUID from the same ID. Source: RFC 9562, section 5.5, and docs/decisions/0025.
 */
export const EVENT_ID_NAMESPACE = '5c8a2f0e-3b1d-4a68-9e77-d0c4b6a1f283';

/** Derives the UUID of an event from its account and its ID. Includes the account, because two accounts may use the same ID. */
export function eventIdOf(account: string, id: string): string {
  return v5(JSON.stringify([account, id]), EVENT_ID_NAMESPACE);
}

/** The source and the ID together identify a CloudEvent. Source: CloudEvents 1.0.2, section "id". */
export function eventIdOfCloudEvent(account: string, source: string, id: string): string {
  return v5(JSON.stringify([account, source, id]), EVENT_ID_NAMESPACE);
}

export const resultSchema = z.object({
  index: z.int().min(0).meta({ description: 'Position of the event in the request, starting at 0.' }),
  eventId: z.string().optional().meta({
    description:
      'ID of the event as sent, if it is a valid name. A CloudEvent without `eventId` in its data has the UUID derived from `source` and `id`.',
  }),
  status: z.literal('rejected'),
  reason: z.enum([...REJECTION_REASONS, CLOUD_EVENT_REASON, NOT_ALLOWED]).meta({
    description: 'Stable code of the rule that the event breaks. The ingest worker uses the same codes.',
  }),
  message: z.string().meta({ description: 'What is wrong with the event and what is allowed.' }),
});

export interface CheckedEvents {
  readonly accepted: readonly object[];
  /** The results of the rejected events, in the order of the request. An accepted event has no result. */
  readonly results: readonly z.output<typeof resultSchema>[];
  /** The first accounts of the rejected events, each with the number of its rejected events. */
  readonly rejectedAccounts: ReadonlyMap<string, number>;
}

export interface CheckRules {
  readonly accounts: readonly string[] | 'all';
  readonly book: PriceBook;
  readonly now: EpochMs;
}

/** Time after which the check of a request lets the process serve other requests. */
const YIELD_AFTER_MS = 2;
/** The clock is read once per this many events, because reading the clock is expensive compared with checking an event. */
const EVENTS_PER_CLOCK_READ = 16;
const MAX_REJECTED_ACCOUNTS = 5;

/** Checks each event independently of the others. @throws the errors of `readEvents`, which yields the events */
export async function checkEvents(events: Iterable<unknown>, rules: CheckRules): Promise<CheckedEvents> {
  const accepted: object[] = [];
  const results: z.output<typeof resultSchema>[] = [];
  const rejectedAccounts = new Map<string, number>();
  let resumedAt = performance.now();
  for (const event of events) {
    const index = accepted.length + results.length;
    if (index % EVENTS_PER_CLOCK_READ === 0 && performance.now() - resumedAt > YIELD_AFTER_MS) {
      await nextTurn();
      resumedAt = performance.now();
    }
    // Results contain the ID that the sender knows. The check replaces this ID in the event, so keep it here.
    const sentId = isRecord(event) ? event['eventId'] : undefined;
    const rejection = event instanceof Unreadable ? event : completeAndCheck(event, rules);
    if (rejection) {
      const { reason, message } = rejection;
      results.push({ index, ...(isNameValue(sentId) && { eventId: sentId }), status: 'rejected', reason, message });
      const account = isRecord(event) ? event['accountId'] : undefined;
      if (typeof account !== 'string') continue;
      const before = rejectedAccounts.get(account) ?? 0;
      if (before > 0 || rejectedAccounts.size < MAX_REJECTED_ACCOUNTS) rejectedAccounts.set(account, before + 1);
    } else if (isRecord(event)) accepted.push(event);
  }
  return { accepted, results, rejectedAccounts };
}

/** Returns the account to use for events that name no account. Only a caller with exactly one account may omit the account. */
export function onlyAccount(accounts: CheckRules['accounts']): string | undefined {
  return accounts !== 'all' && accounts.length === 1 ? accounts[0] : undefined;
}

/** Fills in the account, then the UUID, which depends on the account, and checks the event. Returns undefined if the event is valid. */
function completeAndCheck(event: unknown, { accounts, book, now }: CheckRules) {
  if (isRecord(event)) {
    const { accountId = onlyAccount(accounts), eventId } = event;
    if (accountId === undefined) return rejected('missing_field', ACCOUNT_MISSING);
    event['accountId'] = accountId;
    if (typeof accountId === 'string') {
      if (accounts !== 'all' && !accounts.includes(accountId)) return foreign(accountId, accounts);
    }
    if (typeof eventId === 'string' && isUuid(eventId)) event['eventId'] = eventId.toLowerCase();
    else if (isNameValue(eventId)) event['eventId'] = eventIdOf(String(accountId), eventId);
    else if (eventId !== undefined) {
      return invalidSentId(parsePricedEvent({ ...event, eventId: ANY_UUID }, book, now));
    }
  }
  const checked = parsePricedEvent(event, book, now);
  return checked.ok ? undefined : checked;
}

const ACCOUNT_MISSING =
  'accountId is missing: this API key or token may send events of several accounts, so each event must name its account';

function foreign(accountId: string, accounts: readonly string[]) {
  const only = onlyAccount(accounts);
  const rule =
    only === undefined
      ? 'must be an account that this token is an admin of'
      : `must be ${JSON.stringify(only)}, the account of this API key or token, or be left out`;
  return new Unreadable(NOT_ALLOWED, `accountId ${rule} (got ${quoted(accountId)})`);
}

/** Returns whether the value is a valid ID, which a response may repeat. An invalid ID may be arbitrarily long. */
function isNameValue(value: unknown): value is string {
  return typeof value === 'string' && isName(value);
}
