/**
 * Steady traffic for minutes or hours, while servers and services are killed and frozen. Every accepted event must count once, every
 * rejected event must be kept, the rollups must equal the events, and no process may grow.
 */
import { NODE_OPTIONS } from '@meterline/local-stack';
import { whileFrozen } from '../harness/programs.js';
import { holdsWithin, openJobs, pause } from '../harness/queue.js';
import { type ServiceProcess, withConstants } from '../harness/services.js';
import { compareRejected, read } from './compare.js';
import { growthTable, problemsOf, type Row, watch } from './growth.js';
import { killed, SKEWED_CLOCK } from './injections.js';
import { Traffic } from './steady-traffic.js';
import { auditRepaired, together } from './stream-run.js';
import type { Fault, Found, Run } from './suite.js';

const ACCOUNTS = 40;
const MINUTE_MS = 60_000;
const DRAINED_WITHIN_MS = 600_000;
/** For the comparison and the audit. */
const CHECKED_WITHIN_MS = 1_800_000;
const INJECT_EVERY_MS = 120_000;
/** For each minute of a shorter run, so that it has nine injections. */
const INJECT_IN_SHORT_MS = 6_000;
/** Longer than the lock of a job. */
const FROZEN_MS = 18_000;
/** For the workers an hour has two minutes, so that there are many hours to seal. */
const CLOCK_RATE = 30;
const ALL_BY_DIMENSION = 'startTime=2020-01-01T00:00:00Z&endTime=2040-01-01T00:00:00Z&groupBy=billing_dimension';

export interface SteadyOptions {
  readonly minutes: number;
  /** Events a second. */
  readonly rate: number;
  readonly log: (line: string) => void;
}

export function steadyTraffic(options: SteadyOptions): Fault {
  return {
    name: 'steady-traffic',
    what: 'servers and services: kill and freeze, while traffic is steady',
    onSmallDisk: false,
    withinMs: options.minutes * MINUTE_MS + DRAINED_WITHIN_MS + CHECKED_WITHIN_MS,
    play: (run) => play(run, options),
  };
}

async function play(run: Run, { minutes, rate, log }: SteadyOptions): Promise<Found> {
  const { fixture, name, signal, complain } = run;
  const { queue, warehouse, key } = fixture.product;
  const rightAt = Date.now() + minutes * MINUTE_MS + DRAINED_WITHIN_MS;
  const workerTime = () => Math.floor(rightAt + (Date.now() - rightAt) * CLOCK_RATE);
  const victims = await startVictims(fixture, rightAt);
  const accounts = Array.from({ length: ACCOUNTS }, async (_, n) => {
    const id = `${name}-${n}`;
    return { id, emitterKey: await key(id, 'emitter'), key: await key(id) };
  });
  const traffic = new Traffic(run, await Promise.all(accounts), workerTime, (service) => {
    return victims.get(`${service} ${run.random.integer(1, 2)}`)?.running.url ?? '';
  });
  const rows: Row[] = [];
  const onRow = (row: Row) => {
    rows.push(row);
    log(JSON.stringify({ ...row, events: traffic.sent }));
  };
  const pids = () => new Map([...victims].map(([name, { running }]) => [name, running.pid]));
  const injectEveryMs = Math.min(INJECT_EVERY_MS, minutes * INJECT_IN_SHORT_MS);
  const endsAt = Date.now() + minutes * MINUTE_MS;
  try {
    await together(signal, [
      (stopped) => traffic.send(rate, endsAt, stopped),
      (stopped) => traffic.look(endsAt, stopped),
      (stopped) => watch(pids, fixture, onRow, endsAt, stopped),
      (stopped) => inject({ ...run, brief: true, signal: stopped }, victims, injectEveryMs, endsAt, log),
    ]);
    const overAt = Date.now();
    log(`${traffic.sent} events were sent, ${Math.round(traffic.sent / minutes / 60)} a second`);
    await holdsWithin(DRAINED_WITHIN_MS, signal, async () => (await openJobs(queue)) === 0);
    const [stuck, recoveryMs] = [await openJobs(queue), Date.now() - overAt];
    log(`${traffic.ledger.events} events must count, ${traffic.rejected.length} must be kept as rejected`);
    const differences: string[] = [];
    for (const { id, key } of traffic.accounts) {
      const path = `/v0/accounts/${id}/metrics?resolution=monthly&${ALL_BY_DIMENSION}`;
      differences.push(...traffic.ledger.differences(id, await read({ url: fixture.query.url, key }, path, signal)));
    }
    differences.push(...(await compareRejected(warehouse, name, traffic.rejected)));
    differences.push(...(await auditRepaired(warehouse, undefined)));
    log(`\n${growthTable(rows)}`);
    for (const problem of problemsOf(rows, minutes, [...victims.keys()].filter(isLasting))) complain(problem);
    const events = traffic.ledger.events + traffic.rejected.length;
    return { events, stuck, recoveryMs, differences, compare: async () => [] };
  } finally {
    traffic.disconnect();
  }
}

/** A server or a process of a service. */
interface Victim {
  readonly running: { readonly pid: number; readonly url?: string };
  kill(): Promise<void>;
  start(): Promise<void>;
}

/** @param rightAt when the clocks of the workers are right: they are behind, and run faster */
async function startVictims({ product, clickhouse, redis }: Run['fixture'], rightAt: number) {
  const clock = {
    NODE_OPTIONS: `${NODE_OPTIONS.ingest} --import=${SKEWED_CLOCK}`,
    METERLINE_TEST_CLOCK_RATE: String(CLOCK_RATE),
    METERLINE_TEST_CLOCK_RIGHT_AT: String(rightAt),
  };
  const victims = new Map<string, Victim>(Object.entries({ ClickHouse: clickhouse, Redis: redis }));
  const add = async (name: string, start: () => Promise<ServiceProcess & { readonly url?: string }>) => {
    for (const n of [1, 2]) {
      const victim = {
        running: await start(),
        kill: () => victim.running.kill(),
        start: async () => {
          victim.running = await start();
        },
      };
      victims.set(`${name} ${n}`, victim);
    }
  };
  await add('ingest', () => product.startIngest(withConstants(clock, { maintenanceEveryMs: 2_000 * CLOCK_RATE })));
  await add('collector', product.startCollector);
  await add('query', product.startQuery);
  return victims;
}

/** The second process of each service may be killed at any time. */
function isLasting(name: string): boolean {
  return !name.endsWith(' 2');
}

/**
 * Kills each server once, at the beginning. Then, again and again in random order, kills the second process of each service and freezes a
 * process of any: those that last are only frozen, because their memory is judged.
 * @throws AbortError
 */
async function inject(
  run: Run,
  victims: ReadonlyMap<string, Victim>,
  everyMs: number,
  endsAt: number,
  log: SteadyOptions['log'],
): Promise<void> {
  const { random, signal } = run;
  const kill = ([name, victim]: readonly [string, Victim]) => ({
    what: `${name} is killed`,
    inject: () => killed(() => victim)(run),
  });
  const freeze = ([name, victim]: readonly [string, Victim]) => ({
    what: `${name} is frozen for ${FROZEN_MS / 1000} s`,
    inject: () => whileFrozen(victim.running.pid, () => pause(FROZEN_MS, signal)),
  });
  const [servers, services] = [[...victims].slice(0, 2), [...victims].slice(2)];
  const mortal = services.filter(([name]) => !isLasting(name));
  for (let round = servers.map(kill); ; round = random.shuffled([...mortal.map(kill), freeze(random.pick(services))])) {
    for (const { what, inject } of round) {
      if (Date.now() + everyMs > endsAt) return;
      await pause(everyMs, signal);
      log(what);
      await inject();
    }
  }
}
