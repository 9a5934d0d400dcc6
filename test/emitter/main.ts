/**
 * Kills, freezes and cuts off producers and what they send to, round after round:
 * `npm run test:emitter -- [--rounds 60] [--seed S] [--only fault,fault] [--door queue|collector]`.
 *
 * Each fault in turn, through each door, with a spool and without one, on servers of its own. Exits with 0 only if nothing was lost or doubled.
 * Ctrl-C ends everything.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { inspect, parseArgs } from 'node:util';
import { QUEUE_NAME, QUEUE_PREFIX } from '@meterline/catalog';
import { createWarehouse } from '@meterline/warehouse';
import { Queue } from 'bullmq';
import { Site } from '../faults/site.js';
import { isClean } from '../faults/verdict.js';
import { killServices, startCollector, startIngest } from '../services.js';
import { DOORS, PRODUCER_FAULTS } from './producer-faults.js';
import { type Ground, type ProducerResult, type ProducerRound, playRound } from './round.js';

const ROUND_WITHIN_MS = 10 * 60_000;
const INTERRUPTED = 130;

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '60' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    door: { type: 'string' },
  },
});
const only = options.only?.split(',');
const faults = PRODUCER_FAULTS.filter(({ name }) => only === undefined || only.includes(name));
const plays = [true, false].flatMap((hasSpool) =>
  DOORS.filter((door) => options.door === undefined || options.door === door).flatMap((door) =>
    faults.filter((fault) => (fault.door ?? door) === door).map((fault) => ({ fault, door, hasSpool })),
  ),
);
const [rounds, seed] = [Number(options.rounds), Number(options.seed)];
if (plays.length === 0 || (only && faults.length < only.length) || ![rounds, seed].every(Number.isSafeInteger)) {
  const names = PRODUCER_FAULTS.map(({ name }) => name).join('|');
  console.error(`usage: npm run test:emitter -- [--rounds N] [--seed S] [--only ${names}] [--door ${DOORS.join('|')}]`);
  process.exit(2);
}

const stop = new AbortController();
for (const end of ['SIGINT', 'SIGTERM', 'SIGHUP', 'disconnect'] as const) process.on(end, () => stop.abort());

const site = await Site.open({ onSmallDisk: false });
const queue = new Queue(QUEUE_NAME, { connection: { url: site.redisUrl, maxRetriesPerRequest: null } });
queue.on('error', () => undefined);
const warehouse = createWarehouse(site.database);
try {
  process.exitCode = (await main()) ? 0 : 1;
} catch (error) {
  if (!stop.signal.aborted) throw error;
  process.exitCode = INTERRUPTED;
} finally {
  await queue.disconnect();
  await warehouse.close();
  await killServices();
  await site.close();
}

/** @returns whether every round was clean */
async function main(): Promise<boolean> {
  await startIngest(site.environment('nothing').worker);
  await site.startQuery();
  const { worker: servers } = site.environment('nothing');
  let collector = await startCollector(servers);
  const { url } = collector;
  const ground: Ground = {
    urls: { queue: site.redisUrl, collector: url },
    prefix: QUEUE_PREFIX,
    warehouse,
    asker: async (account) => ({ url: site.query.url, key: await site.createKey(account) }),
    emitterKey: (account) => site.createKey(account, 'emitter'),
    openJobs: () => queue.getJobCountByTypes('waiting', 'active', 'delayed', 'failed'),
    restartRedis: async (afterMs) => {
      await site.redis.kill();
      await sleep(afterMs);
      await site.redis.start();
    },
    restartCollector: async (afterMs) => {
      await collector.kill();
      await sleep(afterMs);
      collector = await startCollector({ ...servers, PORT: new URL(url).port });
    },
  };
  console.log(`seed ${seed}`);
  const rows = new Map<string, ProducerResult[]>();
  for (let n = 0; n < rounds; n += 1) {
    const play = plays[n % plays.length];
    if (play === undefined) break;
    const round = { ...play, seed: seed + n, brief: false };
    const name = `${play.fault.name}, ${play.door}, ${play.hasSpool ? 'spool' : 'memory'}`;
    const result = await played(ground, round);
    rows.set(name, [...(rows.get(name) ?? []), result]);
    console.log(describe(name, round, result));
  }
  console.log(`\n${table(rows)}`);
  return [...rows.values()].flat().every(isClean);
}

async function played(ground: Ground, round: ProducerRound): Promise<ProducerResult> {
  const signal = AbortSignal.any([stop.signal, AbortSignal.timeout(ROUND_WITHIN_MS)]);
  try {
    return await playRound(ground, round, signal);
  } catch (error) {
    stop.signal.throwIfAborted();
    const nothing = { recorded: 0, promised: 0, counted: 0, lost: [], doubled: [] };
    return { ...nothing, complaints: [`broke off: ${inspect(error)}`] };
  }
}

function describe(name: string, { seed: own }: ProducerRound, result: ProducerResult): string {
  const { recorded, promised, counted, lost, doubled, complaints } = result;
  const figures = `${recorded} recorded, ${promised} promised, ${counted} counted`;
  const faulty = [
    ...lost.slice(0, 5).map((mark) => `lost ${mark}`),
    ...doubled.slice(0, 5).map((mark) => `doubled ${mark}`),
  ];
  return [`${isClean(result) ? '✓' : '✗'} ${name} (seed ${own}): ${figures}`, ...faulty, ...complaints].join('\n    ');
}

/** A Markdown table, so that it can be pasted. */
function table(rows: ReadonlyMap<string, readonly ProducerResult[]>): string {
  const lines = [...rows].sort().map(([name, results]) => {
    const sum = (figure: (result: ProducerResult) => number) =>
      results.reduce((total, result) => total + figure(result), 0);
    const figures = [
      results.length,
      sum(({ recorded }) => recorded),
      sum(({ promised }) => promised),
      sum(({ counted }) => counted),
      sum(({ lost }) => lost.length),
      sum(({ doubled }) => doubled.length),
      sum(({ complaints }) => complaints.length),
    ];
    return `| ${[name, ...figures.map((figure) => figure.toLocaleString('en'))].join(' | ')} |`;
  });
  const titles = ['fault', 'rounds', 'recorded', 'promised', 'counted', 'lost', 'doubled', 'complaints'];
  return [`| ${titles.join(' | ')} |`, `|---|${'---:|'.repeat(titles.length - 1)}`, ...lines].join('\n');
}
