/**
 * What befalls a producer with its emitter, and what it sends to: two of them record events, with a spool and without one; something
 * happens to them; and then what counts is compared with what they were told.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@meterline/local-stack';
import { z } from 'zod';
import { testProgram } from '../harness/programs.js';
import { holdsWithin, openJobs, pause } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import { read } from './compare.js';
import type { Fixture } from './fixture.js';
import type { Found, Run } from './suite.js';
import { TcpProxy } from './tcp-proxy.js';

const STARTED_WITHIN_MS = 600_000;
const DRAINED_WITHIN_MS = 600_000;
const DAY_MS = 86_400_000;

interface ProducerRun extends Run {
  /** Between the producers and the collector. */
  readonly link: TcpProxy;
  readonly producers: readonly Producer[];
  /** Kills the collector and starts it again, with the same address. */
  readonly restartCollector: (afterMs: number) => Promise<void>;
}
export type ProducerInjection = (run: ProducerRun) => Promise<void>;

/** One to three times. */
export const killed: ProducerInjection = async ({ random, brief, signal, producers }) => {
  for (let times = random.integer(1, brief ? 1 : 3); times > 0; times -= 1) {
    await Promise.all(producers.map((producer) => producer.end('SIGKILL')));
    await pause(random.integer(0, 200), signal);
    await Promise.all(producers.map((producer) => producer.start(signal)));
    await pause(random.integer(0, 500), signal);
  }
};

export const cutOffAndKilled: ProducerInjection = async ({ link, random, signal, producers }) => {
  link.treat({ kind: random.pick(['hang', 'refuse']) });
  await pause(random.integer(200, 800), signal);
  await Promise.all(producers.map((producer) => producer.end('SIGKILL')));
  link.treat({ kind: 'pass' });
  await Promise.all(producers.map((producer) => producer.start(signal)));
};

/** In the long form for longer than an attempt may take. */
export const frozen: ProducerInjection = async ({ random, brief, signal, producers }) => {
  for (const producer of producers) producer.signal('SIGSTOP');
  await pause(brief ? 600 : random.integer(1_000, 15_000), signal).finally(() => {
    for (const producer of producers) producer.signal('SIGCONT');
  });
};

/** In the long form also silent for ever. */
export const cutOff: ProducerInjection = async ({ link, random, brief, signal }) => {
  if (!brief && random.chance(0.25)) return link.forsake();
  const breaks = { kind: 'cut', afterBytes: () => random.integer(1, 40_000) } as const;
  // Attempts fail at once, where one that hangs may still succeed.
  link.treat(brief ? { kind: 'refuse' } : random.pick([{ kind: 'hang' }, { kind: 'refuse' }, breaks]));
  await pause(brief ? 600 : random.integer(1_000, 25_000), signal);
  link.treat({ kind: 'pass' });
};

export const collectorKilled: ProducerInjection = async ({ random, signal, brief, restartCollector }) => {
  for (let times = brief ? 1 : random.integer(1, 3); times > 0; times -= 1) {
    await restartCollector(brief ? 0 : random.integer(0, 3_000));
    await pause(random.integer(0, 500), signal);
  }
};

/** It closes its emitter and ends; then another one starts. */
export const terminated: ProducerInjection = async ({ signal, producers, complain }) => {
  for (const producer of producers) {
    const end = await producer.end('SIGTERM');
    if (end !== 'SIGTERM') complain(`a producer ended with ${end} instead of SIGTERM`);
    await producer.start(signal);
  }
};

/** One producer after the other, as processes that share a spool, or have none. */
class Producer {
  readonly account: string;
  readonly hasSpool: boolean;
  readonly #args: (run: string) => string[];
  readonly #folder: string;
  readonly #runs: { readonly child: ChildProcess; readonly exited: Promise<unknown[]>; readonly journal: string }[] =
    [];

  constructor(settings: { url: string; key: string; account: string; hasSpool: boolean; folder: string }) {
    const { url, key, account, hasSpool, folder } = settings;
    this.account = account;
    this.hasSpool = hasSpool;
    this.#folder = folder;
    // Short: the path of the socket in it may have 103 bytes.
    const spool = hasSpool ? [join(folder, 'spool')] : [];
    this.#args = (run) => [url, key, account, run, this.#journalOf(run), ...spool];
  }

  #journalOf(run: string): string {
    return join(this.#folder, `${this.hasSpool ? 'kept' : 'memory'}-${run}`);
  }

  /** Starts the next one, and waits until it has recorded an event. */
  async start(signal: AbortSignal): Promise<void> {
    const run = `run${this.#runs.length}`;
    const child = spawn(process.execPath, [testProgram('faults/producer-program'), ...this.#args(run)], {
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    });
    const journal = this.#journalOf(run);
    this.#runs.push({ child, exited: once(child, 'exit'), journal });
    await holdsWithin(STARTED_WITHIN_MS, signal, async () => {
      if (child.exitCode !== null) throw new Error(`a producer ended at its start with ${child.exitCode}`);
      return (await linesOf(journal)).length > 1;
    });
  }

  get #last() {
    const run = this.#runs.at(-1);
    if (!run) throw new Error('no producer was started');
    return run;
  }

  /** Whether the process that runs now was told that events are accepted. */
  async hasSent(): Promise<boolean> {
    return (await linesOf(this.#last.journal)).some((line) => line.startsWith('accepted'));
  }

  /** SIGSTOP and SIGCONT return at once. */
  signal(signal: NodeJS.Signals): void {
    this.#last.child.kill(signal);
  }

  /** Sends the signal, or asks it to close its emitter. @returns the exit code, or the signal that has ended it */
  async end(how: 'SIGKILL' | 'SIGTERM' | 'finish'): Promise<unknown> {
    const { child, exited } = this.#last;
    if (how === 'finish') child.send(how);
    else child.kill(how);
    const [code, signal] = await exited;
    return signal ?? code;
  }

  /** With a spool every recorded event counts; without one every accepted event does, and the others may. */
  async told(): Promise<{ promised: Set<string>; possible: Set<string>; problems: string[] }> {
    const [promised, possible, problems] = [new Set<string>(), new Set<string>(), [] as string[]];
    for (const [number, { child, journal }] of this.#runs.entries()) {
      const lines = await linesOf(journal);
      const last = (word: string) => Number(lines.findLast((line) => line.startsWith(word))?.split(' ')[1] ?? 0);
      const recorded = last('recorded');
      // Who ends by SIGTERM has closed its emitter before, and could not say so any more.
      const isKept = this.hasSpool || child.signalCode === 'SIGTERM';
      for (let n = 0; n < (isKept ? recorded : last('accepted')); n += 1) promised.add(`run${number}-${n}`);
      // One more may have been taken before the journal said so.
      for (let n = 0; n <= recorded; n += 1) possible.add(`run${number}-${n}`);
      problems.push(...lines.filter((line) => line.startsWith('problem')));
    }
    return { promised, possible, problems };
  }

  kill(): void {
    for (const { child } of this.#runs) child.kill('SIGKILL');
  }
}

async function linesOf(journal: string): Promise<string[]> {
  return (await readFile(journal, 'utf8').catch(() => '')).split('\n');
}

/** @throws AbortError */
export async function playProducers(run: Run, inject: ProducerInjection): Promise<Found> {
  const { fixture, name, random, signal, complain } = run;
  const { product } = fixture;
  const folder = await mkdtemp(join(tmpdir(), 'emitter-'));
  const worker = await product.startIngest();
  const port = await findFreePort();
  const startCollector = () => product.startCollector({ PORT: String(port) });
  let collector = await startCollector();
  const link = await TcpProxy.open(port);
  const restartCollector = async (afterMs: number) => {
    await collector.kill();
    await pause(afterMs, signal);
    collector = await startCollector();
  };
  const producers: Producer[] = [];
  try {
    for (const hasSpool of [true, false]) {
      const account = `${name}-${hasSpool ? 'spool' : 'memory'}`;
      const key = await product.key(account, 'emitter');
      producers.push(new Producer({ url: `http://127.0.0.1:${link.port}`, key, account, hasSpool, folder }));
    }
    await Promise.all(producers.map((producer) => producer.start(signal)));
    // What is accepted by then could be lost.
    const haveSent = async () => (await Promise.all(producers.map((producer) => producer.hasSent()))).every(Boolean);
    await holdsWithin(STARTED_WITHIN_MS, signal, haveSent);
    await pause(random.integer(100, 600), signal);
    await inject({ ...run, link, producers, restartCollector });
    const overAt = Date.now();
    await pause(random.integer(0, 300), signal);
    for (const end of await Promise.all(producers.map((producer) => producer.end('finish')))) {
      if (end !== 0) complain(`the last producer ended with ${end}`);
    }
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await openJobs(product.queue)) === 0);
    const [stuck, recoveryMs] = [await openJobs(product.queue), Date.now() - overAt];
    const told = await Promise.all(producers.map(async (producer) => ({ producer, ...(await producer.told()) })));
    for (const { problems, promised } of told) {
      problems.forEach(complain);
      if (promised.size === 0) complain('a producer was promised nothing');
    }
    const compare = async () => (await Promise.all(told.map((each) => differencesOf(fixture, each)))).flat();
    const events = told.reduce((sum, { promised }) => sum + promised.size, 0);
    return { events, stuck, recoveryMs, differences: await compare(), compare };
  } finally {
    for (const producer of producers) producer.kill();
    await Promise.all([link.close(), worker.kill(), collector.kill()]);
    await rm(folder, { recursive: true, force: true });
  }
}

const responseSchema = z.object({ summary: z.object({ totalUsage: z.number() }) });

interface Told {
  readonly producer: Producer;
  readonly promised: ReadonlySet<string>;
  readonly possible: ReadonlySet<string>;
}

async function differencesOf(
  { product, query: { url } }: Fixture,
  { producer: { account }, promised, possible }: Told,
): Promise<string[]> {
  const rowsOf = `SELECT resource_uuid AS mark, toUInt32(count()) AS times
    FROM usage_events FINAL WHERE account_id = {account: String} GROUP BY mark`;
  const rows = await select<{ mark: string; times: number }>(product.warehouse, rowsOf, { account });
  const counted = new Map(rows.map(({ mark, times }) => [mark, times]));
  const window = new URLSearchParams({
    startTime: new Date(Date.now() - DAY_MS).toISOString(),
    endTime: new Date(Date.now() + DAY_MS).toISOString(),
    groupBy: 'billing_dimension',
  });
  const asker = { url, key: await product.key(account) };
  const text = await read(asker, `/v0/accounts/${account}/metrics?${window}`, new AbortController().signal);
  // Each event is a usage of 1.
  const { totalUsage } = responseSchema.parse(JSON.parse(text)).summary;
  const isWrong = ([mark, times]: [string, number]) => times !== 1 || !possible.has(mark);
  return [
    ...[...promised].filter((mark) => !counted.has(mark)).map((mark) => `${account}, ${mark}: lost`),
    ...[...counted].filter(isWrong).map(([mark, times]) => `${account}, ${mark}: counts ${times} times`),
    ...(totalUsage === counted.size ? [] : [`${account}: the API says ${totalUsage} for ${counted.size} events`]),
  ];
}
