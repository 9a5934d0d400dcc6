/** The collector under fuzzed bodies: each answer is what a model says, and the queue holds what was accepted, once. */
import { gzipSync } from 'node:zlib';
import { QUEUE_NAME } from '@meterline/catalog';
import { createOpenApiDocument } from '@meterline/collector';
import { Queue } from 'bullmq';
import { z } from 'zod';
import { answerCheck } from '../contract/openapi-check.js';
import type { SeededRandom } from '../faults/seeded-random.js';
import type { Attack } from './attack.js';
import { type BodyFormat, expectedOf } from './events-model.js';
import type { Findings } from './findings.js';
import { HttpClient, type RawAnswer } from './http-client.js';
import { JobMaker } from './job-cases.js';
import { inLanes } from './lanes.js';
import { MemoryWatch } from './memory.js';
import { PATIENCE_MS } from './waiting.js';

const PREFIX = 'attack-events';
const ACCOUNT = 'door';
const LANES = 8;
const LARGEST_BODY = 60;
const MEMORY_BOUND_MIB = 300;
/** More than is sent here. */
const UNLIMITED = {
  COLLECTOR_ACCOUNT_RATE: '100000',
  COLLECTOR_ACCOUNT_BURST: '1000000',
  COLLECTOR_CALLER_RATE: '100000',
  COLLECTOR_CALLER_BURST: '1000000',
};

const checkAnswer = answerCheck(createOpenApiDocument());
const result = z.object({
  status: z.enum(['accepted', 'refused']),
  eventId: z.string().optional(),
  reason: z.string().min(1).optional(),
  message: z.string().min(1).optional(),
});
const answerSchema = z.object({ results: z.array(result) });
const jobSchema = z.object({ events: z.array(z.record(z.string(), z.unknown())) });

export const eventsAttack: Attack = {
  name: 'events',
  what: 'bodies with hostile events, in two formats and encodings, cut and spoiled, to the collector',
  run: async ({ site, random, events, findings }) => {
    const queue = new Queue(QUEUE_NAME, { prefix: PREFIX, connection: { url: site.redisUrl } });
    const collector = await site.startCollector({ QUEUE_PREFIX: PREFIX, ...UNLIMITED });
    const client = new HttpClient(collector.url, { connections: LANES, patienceMs: PATIENCE_MS });
    const key = await site.key(ACCOUNT, 'emitter');
    const memory = new MemoryWatch(collector.pid);
    const accepted: string[] = [];
    let sent = 0;
    try {
      const maker = new JobMaker(random, { accounts: [ACCOUNT, ACCOUNT, ACCOUNT, 'other'], now: Date.now() });
      const statuses = await inLanes(
        { lanes: LANES, count: Math.ceil(events / (LARGEST_BODY / 3)) },
        async (report) => {
          const body = bodyOf(random, maker);
          const answer = await client.send({
            method: 'POST',
            target: `/v0/accounts/${ACCOUNT}/events`,
            headers: {
              authorization: `Bearer ${key}`,
              'content-type': body.format,
              ...(body.isPacked && { 'content-encoding': 'gzip' }),
            },
            body: body.isPacked ? gzipSync(body.bytes) : body.bytes,
          });
          report(answer.status);
          const { count, kept } = judge(body, answer, findings);
          sent += count;
          accepted.push(...kept);
        },
      );
      const queued = await queuedEvents(queue);
      compare(accepted, queued, findings);
      const report = memory.judged(MEMORY_BOUND_MIB, findings);
      const code = await collector.stop();
      if (code !== 0) findings.add(`the collector ended with ${code}`);
      const listed = [...statuses].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
      return {
        sent: `${sent} events`,
        stood: `${listed.join(', ')}; ${queued.length} in the queue, each once; ${report}`,
      };
    } finally {
      client.close();
      await queue.close();
    }
  },
};

interface Body {
  readonly format: BodyFormat;
  readonly bytes: Buffer;
  readonly isPacked: boolean;
}

function bodyOf(random: SeededRandom, maker: JobMaker): Body {
  const data = maker.data(random.integer(1, LARGEST_BODY));
  const isLines = random.chance(0.3);
  const lines = z.object({ events: z.array(z.unknown()) }).safeParse(data).data?.events ?? [data];
  const text = isLines ? lines.map((event) => JSON.stringify(event)).join('\n') : JSON.stringify(data);
  const spoiled = random.chance(0.1) ? spoil(random, Buffer.from(text)) : Buffer.from(text);
  return {
    format: isLines ? 'application/x-ndjson' : 'application/json',
    bytes: spoiled,
    isPacked: random.chance(0.3),
  };
}

/** Cut off, or with one byte that is another. */
function spoil(random: SeededRandom, bytes: Buffer): Buffer {
  const at = random.integer(0, Math.max(0, bytes.length - 1));
  if (random.chance(0.5)) return bytes.subarray(0, at);
  const spoiled = Buffer.from(bytes);
  if (spoiled.length > 0) spoiled.writeUInt8(random.integer(0, 255), at);
  return spoiled;
}

/** @returns the events that the model and the answer both call accepted */
function judge(body: Body, answer: RawAnswer, findings: Findings): { count: number; kept: readonly string[] } {
  const { status, headers, text } = answer;
  const describe = () => `${body.format} ${body.bytes.toString().slice(0, 600)} → ${status} ${text.slice(0, 400)}`;
  const nothing = { count: 0, kept: [] };
  if (status >= 500) {
    findings.add(`status ${status}`, describe());
    return nothing;
  }
  try {
    checkAnswer({
      method: 'POST',
      path: `/v0/accounts/${ACCOUNT}/events`,
      status,
      headers,
      text,
      body: JSON.parse(text),
    });
  } catch (error) {
    findings.add(`undocumented: ${String(error)}`, describe());
    return nothing;
  }
  const sent = utf8(body.bytes);
  const expected = sent === undefined ? undefined : expectedOf(sent, body.format, ACCOUNT, Date.now());
  const results = answerSchema.safeParse(JSON.parse(text)).data?.results;
  if (!expected || !results) {
    if (expected || results || status < 400) findings.add('a body is judged differently', describe());
    return nothing;
  }
  const areAccepted = results.map((one) => one.status === 'accepted');
  if (String(areAccepted) !== String(expected.areAccepted)) findings.add('an event is judged differently', describe());
  if (status !== (areAccepted.includes(true) ? 202 : 400))
    findings.add(`status ${status} for these results`, describe());
  if (results.some((one) => one.status === 'refused' && (!one.reason || !one.message)))
    findings.add('an event is refused without a reason', describe());
  const ids = results.flatMap((one) => (one.status === 'accepted' ? [one.eventId] : []));
  const kept = expected.events.map((event, index) => canonical({ eventId: ids[index], ...event }));
  return { count: results.length, kept };
}

function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

async function queuedEvents(queue: Queue): Promise<readonly string[]> {
  const jobs = await queue.getJobs(['waiting'], 0, -1);
  return jobs.flatMap((job) => jobSchema.parse(job.data).events.map(canonical));
}

/** Each accepted event as often as it was accepted, and no other. */
function compare(accepted: readonly string[], queued: readonly string[], findings: Findings): void {
  const left = new Map<string, number>();
  for (const event of accepted) left.set(event, (left.get(event) ?? 0) + 1);
  for (const event of queued) left.set(event, (left.get(event) ?? 0) - 1);
  for (const [event, count] of left) {
    if (count > 0) findings.add('an accepted event is not in the queue', event.slice(0, 400));
    if (count < 0) findings.add('the queue has what was not accepted', event.slice(0, 400));
  }
}

function canonical(event: Readonly<Record<string, unknown>>): string {
  return JSON.stringify(Object.entries(event).sort(([a], [b]) => (a < b ? -1 : 1)));
}
