/** What befalls servers and services while a stream of events passes through them. An injection is over when everything that it stopped runs again. */
import { fileURLToPath } from 'node:url';
import { amount, MeterlineClient, MeterlineError, type MetricsResponseBy } from '@meterline/client';
import { FREE_SPACE } from '@meterline/local-stack';
import { sealNext } from '@meterline/warehouse';
import { Redis } from 'ioredis';
import { whileFrozen } from '../harness/programs.js';
import { holdsWithin, pause } from '../harness/queue.js';
import type { ServiceEnvironment, ServiceProcess } from '../harness/services.js';
import { isOutage } from './compare.js';
import { type Fixture, fillDisk, freeDisk, type RestartableServer } from './fixture.js';
import { type Injection, LOCK_MS, type StreamRun } from './stream-run.js';
import type { Run } from './suite.js';
import type { LinkTreatment } from './tcp-proxy.js';

const LOCK_TAKEN_MS = 1.5 * LOCK_MS;
const PASS: LinkTreatment = { kind: 'pass' };
const BEGUN_WITHIN_MS = 300_000;

/** Once or twice. */
export function killed(server: (fixture: Fixture) => Pick<RestartableServer, 'kill' | 'start'>) {
  return async ({ fixture, random, brief, signal }: Run): Promise<void> => {
    for (let times = random.integer(1, brief ? 1 : 2); times > 0; times -= 1) {
      await server(fixture).kill();
      await pause(random.integer(0, brief ? 1_000 : 3_000), signal);
      await server(fixture).start();
      await pause(random.integer(0, 600), signal);
    }
  };
}

export const workersKilled: Injection = async ({ workers, random, brief, signal }) => {
  for (let times = random.integer(1, brief ? 1 : 3); times > 0; times -= 1) {
    const victims = random.chance(0.3) ? workers.running : [random.pick(workers.running)];
    await workers.kill(victims);
    await pause(random.integer(50, brief ? 500 : 1_500), signal);
    await workers.start(victims.length);
    await pause(random.integer(0, 600), signal);
  }
};

export const workerFrozen: Injection = async ({ fixture, workers, random, brief, signal, complain }) => {
  const victim = random.pick(workers.running);
  const isBusy = async () => (await fixture.product.queue.getActiveCount()) > 0;
  if (!(await holdsWithin(BEGUN_WITHIN_MS, signal, isBusy))) complain('no job was in work when a worker was frozen');
  await whileFrozen(victim.pid, () => pause(brief ? LOCK_TAKEN_MS : random.integer(LOCK_MS, 3 * LOCK_MS), signal));
};

/** The only worker seals, and stops between its two watermarks, while others store into the same hours. */
export const sealerFrozen: Injection = async (run) => {
  const { fixture, workers, stream } = run;
  const direct = { CLICKHOUSE_URL: fixture.clickhouse.running.url };
  // All of the stream is due, so that there is something to seal.
  const due = { sealDelayMs: Date.now() - Date.parse(stream.window.endTime) };
  // Until then jobs wait: they are stored while it stands still, and after it.
  await workers.kill(workers.running);
  await heldAt(run, { kind: 'hold', text: 'INSERT INTO usage_hourly (' }, due, async (sealer) => {
    await whileFrozen(sealer.pid, () => othersGoOn(run, direct, due));
  });
};

/** The only worker stops as it recomputes dirty hours: before it writes rows, or before it clears marks. For good or for a while. */
export const maintainerStopped: Injection = async (run) => {
  const { fixture, workers, stream, random } = run;
  const direct = { CLICKHOUSE_URL: fixture.clickhouse.running.url };
  await workers.kill(workers.running);
  // The rest of the stream is late.
  while (await sealNext([fixture.product.warehouse], Date.parse(stream.window.endTime)));
  const text = random.pick(['INSERT INTO usage_hourly (', '"sign":-1']);
  const tenYears = { sealDelayMs: 315_576_000_000 };
  await heldAt(run, { kind: 'hold', text }, tenYears, async (maintainer) => {
    if (random.chance(0.5)) {
      await workers.kill([maintainer]);
      fixture.clickhouseLink.treat(PASS);
      await workers.start(1, direct);
    } else await whileFrozen(maintainer.pid, () => othersGoOn(run, direct));
  });
};

/** Starts a worker through the proxy, and does something to it when it has come to the statement. */
async function heldAt(
  { fixture, workers, signal, complain }: StreamRun,
  held: LinkTreatment,
  constants: Readonly<Record<string, number>>,
  inject: (worker: ServiceProcess) => Promise<void>,
): Promise<void> {
  fixture.clickhouseLink.treat(held);
  try {
    const [worker] = await workers.start(1, {}, constants);
    const isThere = await holdsWithin(BEGUN_WITHIN_MS, signal, () => fixture.clickhouseLink.breaks > 0);
    if (worker && isThere) await inject(worker);
    else complain('no worker was stopped in the middle of its maintenance');
  } finally {
    fixture.clickhouseLink.treat(PASS);
  }
}

/** In some runs for longer than the lock of the one that has stopped. */
async function othersGoOn(
  { fixture, workers, random, signal }: StreamRun,
  env: ServiceEnvironment,
  constants: Readonly<Record<string, number>> = {},
): Promise<void> {
  fixture.clickhouseLink.treat(PASS);
  await workers.start(1, env, constants);
  await pause(random.chance(0.7) ? random.integer(500, 2_000) : LOCK_TAKEN_MS, signal);
}

export const clickhouseHangs: Injection = async ({ fixture, random, brief, signal }) => {
  fixture.clickhouseLink.treat({ kind: 'hang' });
  await pause(brief ? 3_000 : random.integer(2_000, 20_000), signal);
  // The worker then waits until its own time limit for an insert.
  if (!brief && random.chance(0.5)) fixture.clickhouseLink.forsake();
  fixture.clickhouseLink.treat(PASS);
};

/** An insert of these runs is about 20 KB. */
export const clickhouseCuts: Injection = (run) =>
  linksBroken(run, { kind: 'cut', afterBytes: () => run.random.integer(1, 20_000) });

export const clickhouseSwallows: Injection = (run) => linksBroken(run, { kind: 'swallow' });

/** Breaks connections until one to six of them have broken. */
async function linksBroken({ fixture, random, signal, complain }: StreamRun, treatment: LinkTreatment): Promise<void> {
  const wanted = random.integer(1, 6);
  fixture.clickhouseLink.treat(treatment);
  const isDone = await holdsWithin(BEGUN_WITHIN_MS, signal, () => fixture.clickhouseLink.breaks >= wanted);
  if (!isDone) complain(`only ${fixture.clickhouseLink.breaks} of ${wanted} connections were broken`);
  fixture.clickhouseLink.treat(PASS);
}

export const redisUnreachable: Injection = async ({ fixture, random, brief, signal }) => {
  const away = () => pause(brief ? 3_000 : random.pick([5_000, 20_000, 60_000]), signal);
  const how = random.pick(['freeze', 'hang', 'refuse'] as const);
  if (how === 'freeze') return whileFrozen(fixture.redis.running.pid, away);
  fixture.redisLink.treat({ kind: how });
  await away().finally(() => fixture.redisLink.treat(PASS));
};

/** Its limit is what it uses now. */
export const redisFull: Injection = async ({ fixture, random, brief, signal, complain }) => {
  const redis = new Redis(fixture.redis.running.url);
  const limit = (await redis.config('GET', 'maxmemory')) as string[];
  const [, used = ''] = /^used_memory:(\d+)/m.exec(await redis.info('memory')) ?? [];
  // Less than it needs when the queue is empty: then it stays full.
  await redis.config('SET', 'maxmemory', String(Math.floor(Number(used) / 2)));
  try {
    const write = () => redis.set('fault-tests:probe', 'x', 'EX', 1).catch(String);
    const isFull = await holdsWithin(20_000, signal, async () => String(await write()).includes('OOM'));
    if (!isFull) complain('Redis was never full');
    await pause(brief ? 1_500 : random.integer(1_000, 10_000), signal);
  } finally {
    await redis.config('SET', 'maxmemory', limit[1] ?? '0');
    redis.disconnect();
  }
};

const MEBIBYTE = 1024 * 1024;

/**
 * The disk of both servers. The embedded ClickHouse would not notice that a write fails, so it ends itself before
 * (docs/decisions/0026); the last bytes are taken when it has.
 */
export const diskFull: Injection = async ({ fixture, random, brief, signal, complain }) => {
  await fillDisk(fixture.directory, FREE_SPACE.endsBelow + random.integer(1, 100) * MEBIBYTE);
  await pause(random.integer(0, 2_000), signal);
  let hasEnded = false;
  void fixture.clickhouse.running.exited.then(() => {
    hasEnded = true;
  });
  // Again and again, because a server that deletes files makes room.
  const isEnded = await holdsWithin(BEGUN_WITHIN_MS, signal, async () => {
    await fillDisk(fixture.directory, FREE_SPACE.endsBelow - MEBIBYTE);
    return hasEnded;
  });
  if (!isEnded) complain('ClickHouse did not end itself on a disk that was nearly full');
  const until = Date.now() + (brief ? 2_000 : random.integer(1_000, 10_000));
  try {
    while (Date.now() < until) {
      await fillDisk(fixture.directory);
      await pause(100, signal);
    }
  } finally {
    await freeDisk(fixture.directory);
  }
  // Redis ends itself when it cannot write its append-only file, rather than acknowledge what it may lose.
  const isUp = await holdsWithin(BEGUN_WITHIN_MS, signal, () => fixture.restartEndedServers());
  if (!isUp) complain('the servers did not come back when there was space again');
};

export const SKEWED_CLOCK = fileURLToPath(new URL('../../test/faults/skewed-clock.mjs', import.meta.url));

/** The clocks of workers and API are off; those of ClickHouse and Redis are right. */
export const clocksOff: Injection = async ({ fixture, workers, random, brief, signal, complain }) => {
  const offBy = (days: number): ServiceEnvironment => ({
    NODE_OPTIONS: `--import=${SKEWED_CLOCK}`,
    METERLINE_TEST_CLOCK_OFFSET_MS: String(days * 86_400_000),
  });
  const restarted = async (api: ServiceEnvironment, ...each: readonly ServiceEnvironment[]) => {
    const codes = [...(await workers.stop()), await fixture.query.stop()];
    if (codes.some((code) => code !== 0)) complain(`SIGTERM ended services with ${codes.join(', ')}`);
    await Promise.all([fixture.startQuery(api), ...each.map((env) => workers.start(1, env))]);
  };
  await restarted(offBy(random.pick([-2, 2])), offBy(-2), offBy(2));
  await pause(brief ? 500 : random.integer(500, 4_000), signal);
  await restarted({}, {}, {});
};

/** As at a reboot or a deployment. */
export const everythingTerminated: Injection = async ({ fixture, workers, random, signal, complain }) => {
  const services = Promise.all([workers.stop(), fixture.query.stop()]);
  const stopServers = () => Promise.all([fixture.clickhouse.stop(), fixture.redis.stop()]);
  if (random.chance(0.5)) await Promise.all([services, stopServers()]);
  const exitCodes = (await services).flat();
  if (exitCodes.some((code) => code !== 0)) complain(`SIGTERM ended services with ${exitCodes.join(', ')}`);
  await stopServers();
  await pause(random.integer(0, 1_000), signal);
  await Promise.all([fixture.clickhouse.start(), fixture.redis.start()]);
  await Promise.all([workers.start(2), fixture.startQuery()]);
};

/** Injects pairs of things that do not need each other: one must not be in the way of recovering from the other. */
export function together(pairs: readonly (readonly [Injection, Injection])[]): Injection {
  return async (run) => {
    const ended = await Promise.allSettled(run.random.pick(pairs).map((inject) => inject(run)));
    for (const each of ended) if (each.status === 'rejected') throw each.reason;
  };
}

const ENOUGH_WITHIN_MS = 600_000;
const GROUPS_A_PAGE = 25;
const LEAST_PAGES = 4;
const PAGE_RETRY_MS = 100;

/** In the middle of paging. The pages go on with the next process, by the same cursor. */
export const queryKilled: Injection = async (run) => {
  const { fixture, random, signal, complain } = run;
  const isLong = async () => (await readPage(run, '', GROUPS_A_PAGE * LEAST_PAGES))?.meta.hasMore === true;
  if (!(await holdsWithin(ENOUGH_WITHIN_MS, signal, isLong))) complain('there were not enough groups for pages');
  const killAfter = new Set(Array.from({ length: random.integer(1, 3) }, () => random.integer(1, LEAST_PAGES - 1)));
  const pages: Page[] = [];
  for (let cursor = ''; ; ) {
    const page = await readPage(run, cursor, GROUPS_A_PAGE, pages.length === 1);
    if (!page) {
      pages.length = 0;
      cursor = '';
      continue;
    }
    pages.push(page);
    if (!page.meta.hasMore) break;
    cursor = page.meta.nextCursor;
    if (!killAfter.has(pages.length)) continue;
    await fixture.query.kill();
    await fixture.startQuery();
  }
  for (const fault of faultsOf(pages)) complain(fault);
};

/** One group for each event. */
const BY_EVENT = { resolution: 'monthly', groupBy: ['resource_uuid', 'billing_dimension'] } as const;
type Page = MetricsResponseBy<typeof BY_EVENT.groupBy>;

/**
 * Tries again while a server is away.
 * @param mayExpire until the second page is there, a revision or a late event may end the pages, as any client can see
 * @returns undefined when that has happened
 * @throws AbortError, or Error with a response that is no outage
 */
async function readPage(run: StreamRun, cursor: string, limit: number, mayExpire = false): Promise<Page | undefined> {
  const { asker, stream, signal } = run;
  for (;;) {
    const { url, key } = asker();
    const client = new MeterlineClient({ baseUrl: url, credential: key, retries: 0 });
    try {
      return await client.metrics(stream.accountId, { ...stream.window, ...BY_EVENT, limit, cursor }, { signal });
    } catch (error) {
      if (mayExpire && error instanceof MeterlineError && error.code === 'cursor_expired') return undefined;
      if (!isOutage(error)) throw error;
    }
    await pause(PAGE_RETRY_MS, signal);
  }
}

/** Every group once, the same total on every page, and all costs together are the total. */
function faultsOf(pages: readonly Page[]): string[] {
  const totals = new Set(pages.map(({ summary }) => summary.totalCost));
  if (totals.size !== 1) return [`the pages have ${totals.size} totals: ${[...totals].join(', ')}`];
  const groups = pages.flatMap(({ data }) => data);
  const shown = new Set(groups.map(({ resourceUuid, billingDimension }) => `${resourceUuid} ${billingDimension}`));
  const twice = groups.length - shown.size;
  const sum = groups.reduce((total, { summary }) => total.plus(summary.cost), amount(0));
  const [total = ''] = totals;
  return [
    ...(twice > 0 ? [`the pages showed ${twice} groups twice`] : []),
    ...(sum.eq(total) ? [] : [`the groups of all pages add up to ${sum}, and the total is ${total}`]),
  ];
}
