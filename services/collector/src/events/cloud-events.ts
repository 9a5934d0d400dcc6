/**
 * Usage events in CloudEvents: `data` is the event. What the envelope says too may be left out there: `source` and `id` become
 * its eventId, and `time` its timestamp. Source: CloudEvents 1.0.2, its JSON event format and its HTTP protocol binding.
 */
import type { IncomingHttpHeaders } from 'node:http';
import { formatTimestamp, isName, isRecord, parseTimestamp, type RejectionReason } from '@meterline/catalog';
import { eventIdOfCloudEvent } from './event-ids.js';

/** The worker's reasons, and one for what never reaches it. */
export const CLOUD_EVENT_REASON = 'invalid_cloud_event';
export type Reason = RejectionReason | typeof CLOUD_EVENT_REASON;

/** In place of an event that cannot be had from what was sent. */
export class Unreadable {
  /** @param message what is wrong with it */
  constructor(
    readonly reason: Reason,
    readonly message: string,
  ) {}
}

/** @param envelope in the JSON event format @returns the event in it, or an {@link Unreadable} */
export function openCloudEvent(envelope: unknown, account: string): Record<string, unknown> | Unreadable {
  if (!isRecord(envelope)) return new Unreadable(CLOUD_EVENT_REASON, 'a CloudEvent must be a JSON object');
  const { specversion, id, source, type, time, data } = envelope;
  const faults: string[] = [];
  if (specversion !== '1.0') faults.push('specversion must be "1.0"');
  if (!isAttribute(id)) faults.push('id must be a string of 1 to 256 characters without control characters');
  if (!isAttribute(source)) faults.push('source must be a string of 1 to 256 characters without control characters');
  if (!isAttribute(type)) faults.push('type must be a string, such as "meterline.usage"');
  if (time !== undefined && typeof time !== 'string') faults.push('time must be a string');
  if ('data_base64' in envelope) faults.push('data_base64 is not taken; send the event as JSON in data');
  else if (!isRecord(data)) faults.push('data must be the usage event, a JSON object');
  if (!isAttribute(id) || !isAttribute(source) || !isRecord(data) || faults.length > 0) {
    return new Unreadable(CLOUD_EVENT_REASON, faults.join('; '));
  }
  return {
    ...data,
    eventId: data['eventId'] ?? eventIdOfCloudEvent(account, source, id),
    ...(data['timestamp'] === undefined && typeof time === 'string' && { timestamp: inUtc(time) }),
  };
}

/** Whether a request is a CloudEvent in binary mode: its attributes are headers, and its body is the data. */
export function isBinaryCloudEvent(headers: IncomingHttpHeaders): boolean {
  return headers['ce-specversion'] !== undefined || headers['ce-id'] !== undefined;
}

/** The envelope of a request in binary mode, in the JSON event format. */
export function envelopeOf(headers: IncomingHttpHeaders, data: unknown): Readonly<Record<string, unknown>> {
  const attributes = ['specversion', 'id', 'source', 'type', 'time'].flatMap((name) => {
    const value = headers[`ce-${name}`];
    return typeof value === 'string' ? [[name, decoded(unquoted(value))] as const] : [];
  });
  return { ...Object.fromEntries(attributes), data };
}

const QUOTED = /^"((?:[^"\\]|\\.)*)"$/;

/** Earlier releases of CloudEvents wrote values with spaces so. Source: the same section, and RFC 9110, section 5.6.4. */
function unquoted(value: string): string {
  return QUOTED.exec(value)?.[1]?.replace(/\\(.)/g, '$1') ?? value;
}

/** Headers are ASCII; everything else is percent-encoded UTF-8. Source: the HTTP protocol binding, section 3.1.3.2. */
function decoded(value: string): string {
  try {
    return decodeURIComponent(value);
  } catch {
    // A percent sign of its own. decodeURIComponent throws nothing but URIError.
    return value;
  }
}

const MS_PER_MINUTE = 60_000;
const WITH_OFFSET = /^(.+)([+-])([01]\d|2[0-3]):([0-5]\d)$/;

/** A time of an envelope may have any offset, a timestamp has none. What is no time stays as it is, and is rejected as a timestamp. */
function inUtc(time: string): string {
  const [, local = '', sign, hours, minutes] = WITH_OFFSET.exec(time) ?? [];
  const instant = parseTimestamp(`${local}Z`);
  if (instant === undefined || parseTimestamp(time) !== undefined) return time;
  const offset = (Number(hours) * 60 + Number(minutes)) * MS_PER_MINUTE;
  return formatTimestamp(sign === '-' ? instant + offset : instant - offset);
}

function isAttribute(value: unknown): value is string {
  return typeof value === 'string' && isName(value);
}
