import type { UsageEventInput } from '@meterline/catalog';
import { counted } from '@meterline/catalog';
import { type StorageOutcome, type UsageQueue, waitUntilStored } from '@meterline/operations/usage-queue';
import type { Command } from 'commander';
import { type CommandContext, CommandError, formatCount, printResult, say } from '../command.js';
import { withQueue } from '../connections/redis.js';
import { type JsonFlag, nameOf, wholeNumber, withBatch, withJson, withRedisFlags } from '../flags.js';
import { startProgress } from '../output/progress.js';
import { readTraceEvents } from '../replay/trace-events.js';
import type { RedisFlags } from '../settings/settings.js';

interface ReplayFlags extends RedisFlags, JsonFlag {
  readonly account?: string;
  readonly shiftHours: number;
  readonly batch: number;
  /** False with --no-wait. */
  readonly wait: boolean;
  readonly patience: number;
}

interface Replay {
  readonly files: number;
  readonly requests: number;
  readonly events: readonly UsageEventInput[];
}

const MAX_SHIFT_HOURS = 1_000_000;
const HARMLESS = 'Replaying again is harmless: an event that is sent twice counts once.';

export function addCommand(program: Command, context: CommandContext): void {
  const command = program
    .command('replay')
    .description(
      'Sends the Azure LLM inference trace 2023 as usage events: for each request one async request and its compute. ' +
        'All files are read and checked before anything is sent. Event ids derive from file name and line, so replaying ' +
        'again adds nothing.\nThen waits until the ingest workers have stored everything: a job is done when its rows are durable.',
    )
    .argument('<file...>', 'azure-llm-2023-code.csv, azure-llm-2023-conv.csv')
    .option('--account <account>', 'account of the events (default: azure-llm-2023)', nameOf)
    .option(
      '--shift-hours <n>',
      'move every timestamp by this many hours',
      (text) => wholeNumber(text, -MAX_SHIFT_HOURS, MAX_SHIFT_HOURS),
      0,
    )
    .option('--no-wait', 'end as soon as everything is in the queue')
    .option(
      '--patience <seconds>',
      'stop waiting when nothing has been stored for so long',
      (text) => wholeNumber(text, 1, 86_400),
      60,
    )
    .action((paths: string[], flags: ReplayFlags) => runReplay(context, paths, flags));
  withJson(withRedisFlags(withBatch(command)));
}

async function runReplay(context: CommandContext, paths: readonly string[], flags: ReplayFlags): Promise<void> {
  const replay = await readReplay(context, paths, flags);
  const signal = context.interruption();
  await withQueue(context, flags, async (queue) => {
    const start = performance.now();
    const jobIds = await sendAll(context, queue, replay, flags.batch, signal);
    const outcome = flags.wait && !signal.aborted ? await follow(context, queue, jobIds, flags, signal) : undefined;
    report(context, flags, replay, jobIds.length, (performance.now() - start) / 1000, outcome);
    requireSuccess(outcome, flags, signal);
  });
}

async function readReplay({ now }: CommandContext, paths: readonly string[], flags: ReplayFlags): Promise<Replay> {
  const options = { accountId: flags.account, shiftHours: flags.shiftHours };
  const files = await Promise.all(paths.map((path) => readTraceEvents(path, options, now())));
  return {
    files: files.length,
    requests: files.reduce((sum, { requests }) => sum + requests, 0),
    events: files.flatMap(({ events }) => events),
  };
}

/** @returns the ids of the jobs, in order; fewer than there are to send when interrupted */
async function sendAll(
  context: CommandContext,
  queue: UsageQueue,
  { events }: Replay,
  batchSize: number,
  signal: AbortSignal,
): Promise<string[]> {
  const jobIds: string[] = [];
  const progress = startProgress(context, `Sending ${counted(events.length, 'event')}`, events.length);
  let sent = 0;
  try {
    while (sent < events.length && !signal.aborted) {
      const batch = events.slice(sent, sent + batchSize);
      jobIds.push(await queue.send(batch));
      sent += batch.length;
      progress.update(sent);
    }
  } finally {
    progress.stop();
    if (sent < events.length) {
      say(context, `Sent ${formatCount(sent)} of ${counted(events.length, 'event')}. ${HARMLESS}`);
    }
  }
  return jobIds;
}

async function follow(
  context: CommandContext,
  queue: UsageQueue,
  jobIds: readonly string[],
  { patience }: ReplayFlags,
  signal: AbortSignal,
): Promise<StorageOutcome> {
  const progress = startProgress(
    context,
    `Waiting for the ingest workers: ${counted(jobIds.length, 'job')}`,
    jobIds.length,
  );
  try {
    return await waitUntilStored(jobIds, {
      progressOf: (jobId) => queue.progressOf(jobId),
      patienceMs: patience * 1000,
      signal,
      onProgress: (done) => progress.update(done),
      onStall: () =>
        say(
          context,
          `Nothing is being stored. Is an ingest worker running on this Redis? Waiting up to ${patience} s.`,
        ),
    });
  } finally {
    progress.stop();
  }
}

function report(
  context: CommandContext,
  { json, batch }: ReplayFlags,
  { files, requests, events }: Replay,
  jobs: number,
  seconds: number,
  outcome: StorageOutcome | undefined,
): void {
  const sent = Math.min(jobs * batch, events.length);
  const takenIn = outcome === undefined ? null : outcome.stored === jobs;
  // Seconds spent waiting for nothing are no measure of speed.
  const eventsPerSecond = takenIn === false ? null : Math.round(sent / seconds);
  const result = { files, requests, events: sent, jobs, seconds: Number(seconds.toFixed(3)), eventsPerSecond, takenIn };
  const text = [
    `files    ${formatCount(files)}`,
    `requests ${formatCount(requests)}`,
    `events   ${formatCount(sent)}`,
    `seconds  ${seconds.toFixed(1)}`,
    ...(eventsPerSecond === null
      ? []
      : [
          `events/s ${formatCount(eventsPerSecond)}${takenIn ? ', from the first job sent to the last one stored' : ''}`,
        ]),
  ];
  printResult(context, json, result, text.join('\n'));
}

function stillQueued({ pending }: StorageOutcome): string {
  return `${counted(pending, 'job')} ${pending === 1 ? 'is' : 'are'} still in the queue`;
}

function requireSuccess(outcome: StorageOutcome | undefined, { patience }: ReplayFlags, signal: AbortSignal): void {
  if (signal.aborted) {
    const waiting = outcome && outcome.pending > 0 ? ` ${stillQueued(outcome)}.` : '';
    throw new CommandError(`interrupted.${waiting} ${HARMLESS}`);
  }
  if (!outcome) return;
  if (outcome.failed > 0) {
    throw new CommandError(`${counted(outcome.failed, 'job')} failed; the log of the ingest worker says why`);
  }
  if (outcome.pending > 0) {
    throw new CommandError(
      `nothing was stored for ${patience} s: ${stillQueued(outcome)}; ` +
        'nothing is lost, an ingest worker will store them when it runs',
    );
  }
}
