/** Workers under fuzzed jobs, from producers of two major versions of BullMQ and from a hand that writes into Redis. */
import { isDeepStrictEqual } from 'node:util';
import { QUEUE_NAME } from '@meterline/catalog';
import type { Warehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Queue as Queue5 } from 'bullmq-5';
import { printDecimal } from '../oracle/exact.js';
import { COST_DECIMALS } from '../oracle/prices.js';
import { execute, select } from '../stack.js';
import type { Attack, Attacked } from './attack.js';
import { drained } from './drained.js';
import type { Findings } from './findings.js';
import { JobMaker, rawData } from './job-cases.js';
import { identityOf, JobModel, type Refusal, type StoredEvent } from './job-model.js';
import { MemoryWatch } from './memory.js';
import type { AttackSite } from './site.js';

const PREFIX = 'attack-jobs';
const ACCOUNTS = [
  'jobs-0',
  'jobs-1',
  'jobs ünï 2',
  'jobs-3 😀',
  "jobs-4'",
  'jobs-5\\',
  'jobs-6/%2F',
  'jobs-7{x: String}',
];
const LARGEST_JOB = 60;
const ADDED_AT_ONCE = 20;
const MEMORY_BOUND_MIB = 400;

export const jobsAttack: Attack = {
  name: 'jobs',
  what: 'jobs with hostile data and options, by producers of BullMQ 5 and 6, and hashes edited in Redis',
  run: async (attacked) => {
    const { site, findings } = attacked;
    const model = new JobModel();
    const connection = { url: site.redisUrl };
    const producers = [
      new Queue(QUEUE_NAME, { prefix: PREFIX, connection }),
      new Queue5(QUEUE_NAME, { prefix: PREFIX, connection }),
    ] as const;
    try {
      await execute(site.warehouse, 'TRUNCATE TABLE rejected_events');
      await addRaw(attacked, producers[0], model);
      const workers = await Promise.all([
        site.startWorker({ QUEUE_PREFIX: PREFIX, INGEST_BATCH_ROWS: '200', INGEST_FLUSH_MS: '20' }),
        site.startWorker({ QUEUE_PREFIX: PREFIX }),
      ]);
      const memories = workers.map(({ pid }) => new MemoryWatch(pid));
      await addFuzzed(attacked, producers, model);
      await drained(producers[0], findings);
      const memory = memories.map((watch) => watch.judged(MEMORY_BOUND_MIB, findings)).join(' and ');
      for (const code of await Promise.all(workers.map((worker) => worker.stop()))) {
        if (code !== 0) findings.add(`a worker ended with ${code}`);
      }
      const stored = await compareStored(site.warehouse, model, findings);
      await compareRefused(site.warehouse, model.refusals, findings);
      await compareAnswers(site, stored, findings);
      return {
        sent: `${model.events} events`,
        stood: `${stored.length} stored, each once; ${model.refusals.length} refusals kept; ${memory}`,
      };
    } finally {
      await Promise.all(producers.map((producer) => producer.close()));
    }
  },
};

/** Before there are workers, because they would take a job before its hash is edited. */
async function addRaw({ site, random }: Attacked, queue: Queue, model: JobModel): Promise<void> {
  const event = new JobMaker(random, { accounts: ACCOUNTS, now: Date.now() }).fresh();
  for (const data of rawData(event)) {
    const job = await queue.add('usage', {});
    await site.redis.hset(`${PREFIX}:${QUEUE_NAME}:${job.id}`, 'data', data);
    // BullMQ reads an empty text as an empty object.
    model.add(job.id ?? '', data === '' ? '{}' : data, Date.now());
  }
}

async function addFuzzed(
  { random, events }: Attacked,
  producers: readonly [Queue, Queue5],
  model: JobModel,
): Promise<void> {
  const now = Date.now();
  const maker = new JobMaker(random, { accounts: ACCOUNTS, now });
  const most = model.events + events;
  for (let n = 0; model.events < most; ) {
    const jobs = Array.from({ length: ADDED_AT_ONCE }, () => {
      n += 1;
      return {
        name: random.pick(['usage', '', 'ü', '{}', '__proto__']),
        data: maker.data(random.integer(1, LARGEST_JOB)),
        opts: maker.options(n),
      };
    });
    const texts = jobs.map(({ data }) => JSON.stringify(data));
    const added = n % 2 === 0 ? await producers[0].addBulk(jobs) : await producers[1].addBulk(jobs);
    for (const [index, job] of added.entries()) model.add(job.id ?? '', texts[index] ?? '', now);
  }
}

interface StoredRow extends StoredEvent {
  readonly account_id: string;
  readonly event_id: string;
}

/** Each accepted identity is stored, with the payload that wins, and nothing else is. */
async function compareStored(warehouse: Warehouse, model: JobModel, findings: Findings): Promise<StoredRow[]> {
  const rows = await select<StoredRow>(
    warehouse,
    `SELECT account_id, toString(event_id) AS event_id, workspace, resource_type, resource_name, resource_uuid,
            billing_dimension, toString(usage) AS usage, toString(cost) AS cost,
            toString(toUnixTimestamp64Milli(timestamp)) AS timestamp, toString(revision) AS revision,
            toString(voided) AS voided
     FROM usage_events FINAL WHERE startsWith(account_id, 'jobs')`,
  );
  const found = new Set<string>();
  for (const { account_id, event_id, ...row } of rows) {
    const key = identityOf(account_id, event_id, Number(row.timestamp));
    if (found.has(key)) findings.add('an event is stored twice', key);
    found.add(key);
    const fault = model.faultOf(key, row);
    if (fault) findings.add(fault, `${key} ${JSON.stringify(row).slice(0, 400)}`);
  }
  for (const key of model.identities.keys()) if (!found.has(key)) findings.add('an accepted event is lost', key);
  return rows;
}

/** Each refused event is kept, once, with what was sent. */
async function compareRefused(warehouse: Warehouse, refusals: readonly Refusal[], findings: Findings): Promise<void> {
  const rows = await select<{ job_id: string; position: number; payload: string; reason: string }>(
    warehouse,
    'SELECT job_id, position, payload, reason FROM rejected_events FINAL',
  );
  const place = (job: string, position: number) => JSON.stringify([job, position]);
  const kept = new Map(rows.map((row) => [place(row.job_id, row.position), row]));
  if (kept.size < rows.length) findings.add(`${rows.length - kept.size} refusals are kept more than once`);
  for (const { job, position, sent, isWhole } of refusals) {
    const row = kept.get(place(job, position));
    kept.delete(place(job, position));
    if (!row)
      findings.add('a refused event is not kept', `${job}/${position}: ${String(JSON.stringify(sent)).slice(0, 400)}`);
    else if (!isKept(sent, row.payload, isWhole))
      findings.add('a refusal is kept with another payload', `${row.reason} ${row.payload.slice(0, 300)}`);
  }
  for (const row of kept.values())
    findings.add('an event was refused that fits', `${row.reason} ${row.payload.slice(0, 400)}`);
}

function isKept(sent: unknown, payload: string, isWhole: boolean): boolean {
  if (isWhole) return payload === sent;
  try {
    const kept: unknown = JSON.parse(payload);
    return isDeepStrictEqual(kept, sent) || isDeepStrictEqual(kept, JSON.parse(JSON.stringify(sent, infinityAsText)));
  } catch (error) {
    // Nested so deeply that it cannot be written alone: it is kept with its whole job.
    return error instanceof RangeError && payload !== '';
  }
}

/** A number that is too large for a double is kept as a text. */
function infinityAsText(_name: string, value: unknown): unknown {
  return typeof value === 'number' && !Number.isFinite(value) ? String(value) : value;
}

/** The API sums up what is stored, to the last digit. */
async function compareAnswers(site: AttackSite, rows: readonly StoredRow[], findings: Findings): Promise<void> {
  const query = await site.startQuery();
  try {
    for (const account of ACCOUNTS) {
      const own = rows.filter(({ account_id, voided }) => account_id === account && voided === 'false');
      const cost = own.reduce((sum, row) => sum + scaled(row.cost), 0n);
      const path = `/v0/accounts/${encodeURIComponent(account)}/metrics?startTime=1970-01-01T00:00:00Z&endTime=2100-01-01T00:00:00Z`;
      const headers = { authorization: `Bearer ${await site.key(account)}` };
      const text = await (await fetch(`${query.url}${path}`, { headers })).text();
      const expected = `"totalCost":${printDecimal(cost, COST_DECIMALS)}`;
      if (!text.includes(`${expected},`) && !text.includes(`${expected}}`))
        findings.add('a total is wrong', `${account}: not ${expected} in ${text.slice(0, 300)}`);
    }
  } finally {
    await query.kill();
  }
}

function scaled(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(COST_DECIMALS, '0'));
}
