/** The collector under fuzzed bodies: each response is what a model says, and the queue holds what was accepted, once. */
import { gzipSync } from 'node:zlib';
import { createOpenApiDocument } from '@meterline/collector';
import * as fc from 'fast-check';
import { v5 } from 'uuid';
import { z } from 'zod';
import { HttpClient, type RawResponse } from '../contract/raw-http.js';
import { responseCheck } from '../harness/openapi-check.js';
import type { Product } from '../harness/product.js';
import { isName, isRecord, MOST_EVENTS, parsed, understand } from '../oracle/event-rules.js';
import { eventData } from './arbitraries.js';
import { holds, throwAll, watchMemory } from './run.js';

const ACCOUNT = 'fuzz';
const PARALLEL = 8;
const LARGEST_BODY = 60;
const MEMORY_BOUND_MIB = 300;

const checkResponse = responseCheck(createOpenApiDocument());
const result = z.object({ index: z.int(), reason: z.string().min(1), message: z.string().min(1) });
const responseSchema = z.object({ accepted: z.int(), rejected: z.int(), results: z.array(result) });
const jobSchema = z.object({ events: z.array(z.record(z.string(), z.unknown())) });

type BodyFormat = 'application/json' | 'application/x-ndjson';
interface Body {
  readonly format: BodyFormat;
  readonly bytes: Buffer;
  readonly isPacked: boolean;
}

/** Bodies, of which one in ten is cut off, or has a byte that is another. */
function bodies(now: number): fc.Arbitrary<Body> {
  return fc
    .record({
      data: eventData([ACCOUNT, ACCOUNT, ACCOUNT, 'other'], now, LARGEST_BODY),
      ...{ isLines: fc.boolean(), isPacked: fc.boolean(), spoil: fc.nat(19), at: fc.nat(), byte: fc.nat(255) },
    })
    .map(({ data, isLines, isPacked, spoil, at, byte }) => {
      const list = z.object({ events: z.array(z.unknown()) }).safeParse(data).data?.events ?? [data];
      const text = isLines ? list.map((one) => JSON.stringify(one)).join('\n') : JSON.stringify(data);
      const bytes = Buffer.from(text);
      const place = at % Math.max(1, bytes.length);
      if (spoil === 0 && bytes.length > 0) bytes.writeUInt8(byte, place);
      const format = isLines ? 'application/x-ndjson' : 'application/json';
      return { format, bytes: spoil === 1 ? bytes.subarray(0, place) : bytes, isPacked };
    });
}

export async function fuzzEvents({ queue, key, startCollector }: Product, events: number): Promise<void> {
  const collector = await startCollector({ ACCOUNT_RATE: '1000000' });
  const client = new HttpClient(collector.url, PARALLEL);
  const authorization = `Bearer ${await key(ACCOUNT, 'emitter')}`;
  const memory = watchMemory(collector.pid, MEMORY_BOUND_MIB);
  const accepted: string[] = [];
  const count = Math.ceil(events / (LARGEST_BODY / 3));
  await holds(bodies(Date.now()), { count, parallel: PARALLEL }, async (body) => {
    const { format, bytes, isPacked } = body;
    const response = await client.send({
      method: 'POST',
      target: '/v0/events',
      headers: { authorization, 'content-type': format, ...(isPacked && { 'content-encoding': 'gzip' }) },
      body: isPacked ? gzipSync(bytes) : bytes,
    });
    accepted.push(...judged(body, response));
  });
  const jobs = await queue.getJobs(['waiting'], 0, -1);
  compare(
    accepted,
    jobs.flatMap((job) => jobSchema.parse(job.data).events.map(canonical)),
  );
  client.close();
  memory();
  if ((await collector.stop()) !== 0) throw new Error('the collector ended with an error');
}

/** @returns the events that the model and the response both call accepted @throws Error where they differ */
function judged({ format, bytes }: Body, { status, headers, text }: RawResponse): readonly string[] {
  const wrong = (what: string) => new Error(`${what}: ${format} ${bytes.toString()} → ${status} ${text}`);
  if (status >= 500) throw wrong(`status ${status}`);
  const body: unknown = JSON.parse(text);
  checkResponse({ method: 'POST', path: '/v0/events', status, headers, text, body });
  const sent = utf8(bytes);
  const expected = sent === undefined ? undefined : expectedOf(sent, format, ACCOUNT, Date.now());
  const receipt = responseSchema.safeParse(body).data;
  if (!expected || !receipt) {
    if (expected || receipt || status < 400) throw wrong('a body is judged differently');
    return [];
  }
  const rejected = expected.areAccepted.flatMap((isAccepted, index) => (isAccepted ? [] : [index]));
  const accepted = expected.events.length;
  if (String(receipt.results.map(({ index }) => index)) !== String(rejected))
    throw wrong('an event is judged differently');
  if (receipt.accepted !== accepted || receipt.rejected !== rejected.length) throw wrong('the counts are wrong');
  if (status !== (accepted > 0 ? 202 : 400)) throw wrong('the status does not match the results');
  return expected.events.map(canonical);
}

function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** Each accepted event is in the queue as often as it was accepted, and no other. */
function compare(accepted: readonly string[], queued: readonly string[]): void {
  const left = new Map<string, number>();
  for (const event of accepted) left.set(event, (left.get(event) ?? 0) + 1);
  for (const event of queued) left.set(event, (left.get(event) ?? 0) - 1);
  throwAll([...left].flatMap(([event, count]) => (count === 0 ? [] : [`${count} times not in the queue: ${event}`])));
}

function canonical(event: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.entries(event).sort(([a], [b]) => (a < b ? -1 : 1)));
}

const EVENT_ID_NAMESPACE = '5c8a2f0e-3b1d-4a68-9e77-d0c4b6a1f283';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
/** Stands for the UUID that another id becomes: the rules look at no more than its form. */
const ANY_UUID = '00000000-0000-5000-8000-000000000000';

/** The most values of an event, and so of a body that is no array and holds none. */
const MOST_VALUES = 256;

/** What the collector must answer to a body, worked out without the product's code, from the rules of a single event. */
interface Expected {
  /** Whether each event is accepted, in order. */
  readonly areAccepted: readonly boolean[];
  /** The accepted events, as a job holds them. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
}

/** @returns undefined where the body as a whole must be refused */
function expectedOf(text: string, format: BodyFormat, account: string, now: number): Expected | undefined {
  const sent = format === 'application/json' ? eventsIn(text) : linesIn(text).map(parsed);
  if (!sent || sent.length === 0 || sent.length > MOST_EVENTS) return undefined;
  const completed = sent.map((event) => completedFor(event, account));
  const areAccepted = completed.map(
    (event) => event?.['accountId'] === account && understand(withUuid(event), now) !== undefined,
  );
  const events = completed.flatMap((event, index) => (event && areAccepted[index] ? [event] : []));
  return { areAccepted, events: events.map((event) => withFinalId(event, account)) };
}

function linesIn(text: string): readonly string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

function eventsIn(text: string): readonly unknown[] | undefined {
  const value = parsed(text);
  if (Array.isArray(value)) return value;
  if (!isRecord(value)) return undefined;
  if (!Object.hasOwn(value, 'events')) return valuesIn(text) > MOST_VALUES ? undefined : [value];
  const { events } = value;
  return Object.keys(value).length === 1 && Array.isArray(events) ? events : undefined;
}

/** All but the first, which neither follows a comma nor stands in anything. */
function valuesIn(text: string): number {
  return text.replaceAll(/"(?:[^"\\]|\\.)*"/gs, '').match(/[,[{]/g)?.length ?? 0;
}

function completedFor(event: unknown, account: string): Record<string, unknown> | undefined {
  if (!isRecord(event)) return undefined;
  return Object.hasOwn(event, 'accountId') ? event : { ...event, accountId: account };
}

function withUuid(event: Record<string, unknown>): Record<string, unknown> {
  const { eventId } = event;
  return typeof eventId === 'string' && !UUID.test(eventId) && isName(eventId)
    ? { ...event, eventId: ANY_UUID }
    : event;
}

/** As docs/guides/emitting.md describes it: an ID that is not a UUID becomes a UUID of version 5. */
function withFinalId(event: Record<string, unknown>, account: string): Record<string, unknown> {
  const id = String(event['eventId']);
  const eventId = UUID.test(id) ? id.toLowerCase() : v5(JSON.stringify([account, id]), EVENT_ID_NAMESPACE);
  return { ...event, eventId };
}
