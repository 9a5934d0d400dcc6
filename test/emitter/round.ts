/** One round: producers record events, something happens to them, and then what counts is compared with what they were told. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { Warehouse } from '@meterline/warehouse';
import { z } from 'zod';
import type { Asker } from '../faults/accepted-events.js';
import { SeededRandom } from '../faults/seeded-random.js';
import { TcpProxy } from '../faults/tcp-proxy.js';
import type { Verdict } from '../faults/verdict.js';
import { holdsWithin, pause } from '../faults/waiting.js';
import { select } from '../stack.js';
import type { Door, ProducerFault } from './producer-faults.js';
import { type Journal, Runtime } from './runtime.js';

const STARTED_WITHIN_MS = 120_000;
const DRAINED_WITHIN_MS = 120_000;

/** The servers of a round, with a worker that takes jobs. */
export interface Ground {
  /** Where each door is. */
  readonly urls: Readonly<Record<Door, string>>;
  readonly prefix: string;
  readonly warehouse: Warehouse;
  /** The query API, with an admin's key. */
  asker(account: string): Promise<Asker>;
  /** A key that may send events of the account to the collector. */
  emitterKey(account: string): Promise<string>;
  /** Jobs that are not completed. */
  openJobs(): Promise<number>;
  restartRedis(afterMs: number): Promise<void>;
  restartCollector(afterMs: number): Promise<void>;
}

export interface ProducerRound {
  readonly fault: ProducerFault;
  readonly door: Door;
  readonly hasSpool: boolean;
  readonly seed: number;
  readonly brief: boolean;
}

export interface ProducerResult extends Verdict {
  readonly recorded: number;
  /** Those that had to count. */
  readonly promised: number;
  /** Those that count. */
  readonly counted: number;
}

/** @throws AbortError */
export async function playRound(ground: Ground, round: ProducerRound, signal: AbortSignal): Promise<ProducerResult> {
  const { fault, door, hasSpool, seed, brief } = round;
  const random = new SeededRandom(seed);
  const account = `${fault.name}-${door}-${hasSpool ? 'spool' : 'memory'}-${seed}`;
  const apiKey = door === 'collector' ? { apiKey: await ground.emitterKey(account) } : {};
  const folder = await mkdtemp(join(tmpdir(), 'emitter-'));
  const url = new URL(ground.urls[door]);
  const link = await TcpProxy.open(Number(url.port));
  url.port = String(link.port);
  const runtimes: Runtime[] = [];
  const complaints: string[] = [];
  const producer = () => {
    const last = runtimes.at(-1);
    if (last === undefined) throw new Error('no producer was started');
    return last;
  };
  const startNext = async () => {
    const run = `run${runtimes.length}`;
    const journal = join(folder, run);
    const spool = hasSpool ? { spool: join(folder, 'spool') } : {};
    const runtime = new Runtime({ url: url.href, ...apiKey, prefix: ground.prefix, account, run, journal, ...spool });
    runtimes.push(runtime);
    await holdsWithin(STARTED_WITHIN_MS, signal, async () => (await runtime.journal()).recorded > 0);
  };
  try {
    await startNext();
    await pause(random.integer(100, 600), signal);
    const complain = (what: string) => void complaints.push(what);
    const { restartRedis, restartCollector } = ground;
    await fault.strike({ link, random, brief, signal, producer, startNext, restartRedis, restartCollector, complain });
    await pause(random.integer(0, 300), signal);
    const end = await producer().finish();
    if (end !== 0) complain(`the last producer ended with ${end}`);
    if (!(await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await ground.openJobs()) === 0))) {
      complain('jobs are left in the queue');
    }
    const journals = new Map<string, Journal>();
    for (const runtime of runtimes) {
      const journal = await runtime.journal();
      // Who ends by SIGTERM has closed its emitter before, and could not say so any more.
      const accepted = runtime.isTerminated ? journal.recorded : journal.accepted;
      journals.set(runtime.settings.run, { ...journal, accepted });
    }
    return await compare(ground, account, { journals, hasSpool, complaints });
  } finally {
    for (const runtime of runtimes) runtime.signal('SIGKILL');
    await link.close();
    await rm(folder, { recursive: true, force: true });
  }
}

interface Told {
  readonly journals: ReadonlyMap<string, Journal>;
  readonly hasSpool: boolean;
  readonly complaints: readonly string[];
}

/** With a spool every recorded event counts once; without one every accepted event does, and the others at most once. */
async function compare(ground: Ground, account: string, told: Told): Promise<ProducerResult> {
  const counted = await countedEvents(ground.warehouse, account);
  const promised = new Set<string>();
  const possible = new Set<string>();
  for (const [run, { recorded, accepted }] of told.journals) {
    const kept = told.hasSpool ? recorded : accepted;
    for (let n = 0; n < kept; n += 1) promised.add(`${run}-${n}`);
    for (let n = 0; n <= recorded; n += 1) possible.add(`${run}-${n}`);
  }
  const answered = await answeredEvents(await ground.asker(account), account);
  const complaints = [...told.complaints];
  for (const { problems } of told.journals.values()) complaints.push(...problems);
  if (answered !== counted.size) complaints.push(`the API answers ${answered} for ${counted.size} events`);
  return {
    recorded: [...told.journals.values()].reduce((sum, { recorded }) => sum + recorded, 0),
    promised: promised.size,
    counted: counted.size,
    lost: [...promised].filter((mark) => !counted.has(mark)),
    doubled: [...counted].filter(([mark, times]) => times !== 1 || !possible.has(mark)).map(([mark]) => mark),
    complaints,
  };
}

/** How often each event is stored, by its name. */
async function countedEvents(warehouse: Warehouse, account: string): Promise<Map<string, number>> {
  const rows = await select<{ mark: string; times: number }>(
    warehouse,
    `SELECT resource_uuid AS mark, toUInt32(count()) AS times
     FROM usage_events FINAL WHERE account_id = {account: String} GROUP BY mark`,
    { account },
  );
  return new Map(rows.map(({ mark, times }) => [mark, times]));
}

const ANSWER_ATTEMPTS = 60;
const ANSWER_RETRY_MS = 500;

const answerSchema = z.object({ summary: z.object({ totalUsage: z.number() }) });

/** Each event is a usage of 1. */
async function answeredEvents({ url, key }: Asker, account: string): Promise<number> {
  const day = 24 * 3_600_000;
  const window = {
    startTime: new Date(Date.now() - day).toISOString(),
    endTime: new Date(Date.now() + day).toISOString(),
    groupBy: 'billing_dimension',
  };
  const ask = () =>
    fetch(`${url}/v0/accounts/${account}/metrics?${new URLSearchParams(window)}`, {
      headers: { authorization: `Bearer ${key}` },
    });
  let response = await ask();
  // The API answers 503 until it has found a Redis that was killed again.
  for (let attempt = 1; response.status === 503 && attempt < ANSWER_ATTEMPTS; attempt += 1) {
    await response.text();
    await delay(ANSWER_RETRY_MS);
    response = await ask();
  }
  return answerSchema.parse(await response.json()).summary.totalUsage;
}
