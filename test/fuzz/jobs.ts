/** Workers under fuzzed jobs, from producers of two major versions of BullMQ and from a hand that writes into Redis. */
import { isDeepStrictEqual } from 'node:util';
import { QUEUE_NAME } from '@meterline/catalog';
import type { JobsOptions } from 'bullmq';
import { Queue as Queue5 } from 'bullmq-5';
import * as fc from 'fast-check';
import type { Product } from '../harness/product.js';
import { drained } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import { hourOf } from '../oracle/calendar.js';
import { COST_DECIMALS, eventsOfJob, parsed, USAGE_DECIMALS } from '../oracle/event-rules.js';
import { printDecimal } from '../oracle/exact.js';
import { Oracle } from '../oracle/model.js';
import { event, eventData } from './arbitraries.js';
import { holds, SEED, throwAll, watchMemory } from './run.js';

const ACCOUNTS = ['jobs', 'jobs ünï', 'jobs 😀', "jobs'", 'jobs\\', 'jobs/%2F', 'jobs{x: String}'];
const LARGEST_JOB = 60;
const JOBS_A_RUN = 40;
const EVENTS_A_RUN = 500;
const MEMORY_BOUND_MIB = 400;

interface Job {
  readonly name: string;
  readonly data: unknown;
  /** Options that a producer may set, and that must change nothing. */
  readonly opts: JobsOptions;
}

const options: fc.Arbitrary<JobsOptions> = fc.oneof(
  fc.constant({}),
  fc.constantFrom<JobsOptions>({ lifo: true }, { attempts: 3, backoff: 10 }, { keepLogs: 0, sizeLimit: 100_000_000 }),
  fc.constantFrom<JobsOptions>({ removeOnComplete: true }, { removeOnComplete: false, removeOnFail: true }),
  fc.integer({ min: 1, max: 2_097_151 }).map((priority) => ({ priority })),
  fc.nat(200).map((delay) => ({ delay })),
  fc.constantFrom(0, 1, -1, 8_640_000_000_000_000, 1.5).map((timestamp) => ({ timestamp })),
  fc
    .uuid()
    .chain((id) => fc.constantFrom('x', 'ü', ' ', '{}', '"', '😀').map((end) => ({ jobId: `own-${id}-${end}` }))),
);

/** By producers of BullMQ 5 and 6, and in hashes edited in Redis. */
export async function fuzzJobs(product: Product, events: number): Promise<void> {
  const { env } = product;
  const connection = { url: env.REDIS_URL ?? '' };
  const queue5 = new Queue5(QUEUE_NAME, { prefix: env.QUEUE_PREFIX ?? '', connection });
  try {
    await fuzzWorkers(product, queue5, events);
  } finally {
    await queue5.close();
  }
}

async function fuzzWorkers(product: Product, queue5: Queue5, events: number): Promise<void> {
  const { queue } = product;
  const now = Date.now();
  const model = await addRaw(product);
  const workers = [
    await product.startIngest({
      METERLINE_CONSTANTS: JSON.stringify({ batchRows: 200, flushMs: 20, maintenanceEveryMs: 2_000 }),
    }),
    await product.startIngest(),
  ];
  await compare(product, model, '');
  const memories = workers.map(({ pid }) => watchMemory(pid, MEMORY_BOUND_MIB));
  const job: fc.Arbitrary<Job> = fc.record({
    name: fc.constantFrom('usage', '', 'ü', '{}', '__proto__'),
    data: eventData(ACCOUNTS, now, LARGEST_JOB),
    opts: options,
  });
  const jobs = fc.array(job, { minLength: 1, maxLength: JOBS_A_RUN });
  let runs = 0;
  await holds(jobs, { count: events / EVENTS_A_RUN, parallel: 1 }, async (list) => {
    runs += 1;
    // Each run has accounts of its own, so that it can be compared and repeated alone.
    const run = ` ${runs}`;
    const own = list.map((one) => ({ ...one, data: inAccounts(one.data, run), opts: ownId(one.opts, run) }));
    const [first, second] = [own.slice(0, own.length / 2), own.slice(own.length / 2)];
    // Some come twice.
    const added = [...(await queue.addBulk(first)), ...(await queue5.addBulk([...second, ...first.slice(0, 3)]))];
    const sent = [...own, ...first.slice(0, 3)];
    const expected = new JobModel();
    const ids = new Set<string>();
    for (const [index, { id = '' }] of added.entries()) {
      // A producer's own id that is known adds nothing.
      if (!ids.has(id)) expected.add(id, JSON.stringify(sent[index]?.data), now);
      ids.add(id);
    }
    await compare(product, expected, run);
  });
  for (const memory of memories) memory();
  const codes = await Promise.all(workers.map((worker) => worker.stop()));
  throwAll(codes.filter((code) => code !== 0).map((code) => `a worker ended with ${code}`));
}

/** The data of a job, with accounts of a run of their own. */
function inAccounts(data: unknown, run: string): unknown {
  const text = JSON.stringify(data, (key, value) =>
    key === 'accountId' && ACCOUNTS.includes(value) ? `${value}${run}` : value,
  );
  return JSON.parse(text);
}

function ownId(opts: JobsOptions, run: string): JobsOptions {
  return opts.jobId === undefined ? opts : { ...opts, jobId: `${opts.jobId}${run}` };
}

/** Before there are workers, because they would take a job before its hash is edited. */
async function addRaw({ queue, redis }: Product): Promise<JobModel> {
  const model = new JobModel();
  const [good = {}] = fc.sample(event(['jobs'], Date.now(), 1_000), { seed: SEED, numRuns: 1 });
  for (const data of rawData(good)) {
    const job = await queue.add('usage', {});
    await redis.hset(queue.toKey(job.id ?? ''), 'data', data);
    // BullMQ reads an empty text as an empty object.
    model.add(job.id ?? '', data === '' ? '{}' : data, Date.now());
  }
  return model;
}

/** Data that no JSON writer gives: an object for each job, as text or bytes. */
function rawData(event: object): readonly (string | Buffer)[] {
  const text = JSON.stringify(event);
  const inserted = (member: string) => text.replace('{', `{${member},`);
  const withUsage = (usage: string) => text.replace(/"usage":[^,}]+/, `"usage":${usage}`);
  const withWorkspace = (workspace: string) => text.replace(/"workspace":"[^"]*"/, `"workspace":"${workspace}"`);
  return [
    ...['', ' ', 'null', '{', text.slice(0, -1), `${text}x`, `\ufeff${text}`, ` \n${text}\t`],
    ...['"usage":1e400', '"__proto__":{"usage":1}', '"eventId":"x"'].map(inserted),
    ...['1e400', '-0', '0.1000000000000000055511151231257827', '01', 'NaN'].map(withUsage),
    ...['\xff\xfe', '\xc0\x80'].map((bytes) => Buffer.from(withWorkspace(bytes), 'latin1')),
    withWorkspace('\\ud800'),
    `${'['.repeat(100_000)}${']'.repeat(100_000)}`,
    `{"events":[${text},${'{"a":'.repeat(20_000)}1${'}'.repeat(20_000)}]}`,
    `{"events":[${text}],"events":[]}`,
    `{"events":[${Array(5_000).fill('{}').join(',')}]}`,
    `{"events":[${Array(5_001).fill(text).join(',')}]}`,
  ];
}

interface Rejection {
  /** The job, and the position of the event there. */
  readonly place: string;
  /** What was sent; a text for a job that was rejected whole. */
  readonly sent: unknown;
  readonly isWhole: boolean;
}

/** What must be stored for jobs as Redis holds them: docs/decisions/0017, from the rules of a job and the oracle. */
class JobModel {
  readonly oracle = new Oracle();
  readonly rejections: Rejection[] = [];
  /** The ids of the jobs. */
  readonly jobs: string[] = [];

  /** @param data the job's data as Redis returns it @param now a time at which the worker may take it */
  add(job: string, data: string | Buffer, now: number): void {
    this.jobs.push(job);
    const text = data.toString();
    const events = writableEvents(eventsOfJob(parsed(text)));
    if (!events) this.rejections.push({ place: `${job} 0`, sent: text, isWhole: true });
    for (const [position, sent] of events?.entries() ?? []) {
      const isRejected = this.oracle.accept(sent, now) === 'rejected';
      if (isRejected) this.rejections.push({ place: `${job} ${position}`, sent, isWhole: false });
    }
  }
}

/** An event that is nested too deeply to be written alone makes its whole job invalid. */
function writableEvents(events: readonly unknown[] | undefined): readonly unknown[] | undefined {
  try {
    JSON.stringify(events);
    return events;
  } catch {
    return undefined;
  }
}

/**
 * Waits until what was sent is stored or rejected, and compares that with the model.
 * @param run what the names of its accounts end with @throws Error with all that is wrong
 */
async function compare(product: Product, model: JobModel, run: string): Promise<void> {
  const accounts = ACCOUNTS.map((account) => `${account}${run}`);
  await drained(product.queue);
  const rows = await select<StoredRow>(
    product.warehouse,
    `SELECT account_id, toString(event_id) AS event_id, workspace, resource_type, resource_name, resource_uuid,
            billing_dimension, toString(usage) AS usage, toString(cost) AS cost,
            toString(toUnixTimestamp64Milli(timestamp)) AS timestamp, toString(revision) AS revision,
            toString(voided) AS voided
     FROM usage_events FINAL WHERE account_id IN {accounts: Array(String)}`,
    { accounts },
  );
  throwAll([...wronglyStored(rows, model.oracle), ...(await wronglyRejected(product, model))]);
}

type StoredRow = Readonly<Record<string, string>> & { readonly account_id: string; readonly event_id: string };
const identityOf = (account: string, eventId: string, hour: number) => JSON.stringify([account, eventId, hour]);

/** Each accepted identity is stored, with the payload that wins, and nothing else is. */
function wronglyStored(rows: readonly StoredRow[], oracle: Oracle): string[] {
  const wanted = new Map(
    oracle.stored().map(({ accountId, eventId, hour, revision, payloads }) => [
      identityOf(accountId, eventId, hour),
      payloads.map((payload) => ({
        workspace: payload.workspace,
        resource_type: payload.resourceType,
        resource_name: payload.resourceName,
        resource_uuid: payload.resourceUuid,
        billing_dimension: payload.billingDimension,
        usage: printDecimal(payload.usage, USAGE_DECIMALS),
        cost: printDecimal(payload.cost, COST_DECIMALS),
        timestamp: String(payload.timestamp),
        revision: String(revision),
        voided: String(payload.voided),
      })),
    ]),
  );
  const problems = rows.flatMap(({ account_id, event_id, ...row }) => {
    const key = identityOf(account_id, event_id, hourOf(Number(row['timestamp'])));
    const isRight = wanted.get(key)?.some((one) => isDeepStrictEqual(one, row));
    const isKnown = wanted.delete(key);
    if (isRight) return [];
    const problem = isKnown
      ? 'another payload than the winner is stored'
      : 'an event is stored twice or was not accepted';
    return [`${problem}: ${key} ${JSON.stringify(row)}`];
  });
  return [...problems, ...[...wanted.keys()].map((key) => `an accepted event is lost: ${key}`)];
}

/** Each rejected event is kept, once, with what was sent. */
async function wronglyRejected({ warehouse }: Product, { jobs, rejections }: JobModel): Promise<string[]> {
  const rows = await select<{ place: string; payload: string; reason: string }>(
    warehouse,
    `SELECT concat(job_id, ' ', toString(position)) AS place, payload, reason FROM rejected_events FINAL
     WHERE job_id IN {jobs: Array(String)}`,
    { jobs },
  );
  const kept = new Map(rows.map((row) => [row.place, row]));
  const problems = kept.size < rows.length ? [`${rows.length - kept.size} rejections are kept more than once`] : [];
  for (const rejection of rejections) {
    const row = kept.get(rejection.place);
    kept.delete(rejection.place);
    if (!row) problems.push(`a rejected event is not kept: ${rejection.place} ${JSON.stringify(rejection.sent)}`);
    else if (!isKept(rejection, row.payload)) problems.push(`another payload is kept: ${row.reason} ${row.payload}`);
  }
  for (const row of kept.values()) problems.push(`an event was rejected that fits: ${row.reason} ${row.payload}`);
  return problems;
}

function isKept({ sent, isWhole }: Rejection, payload: string): boolean {
  if (isWhole) return payload === sent;
  const kept: unknown = JSON.parse(payload);
  return isDeepStrictEqual(kept, sent) || isDeepStrictEqual(kept, JSON.parse(JSON.stringify(sent, infinityAsText)));
}

/** A number that is too large for a double is kept as a text. */
function infinityAsText(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}
