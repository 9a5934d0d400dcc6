/**
 * Two processes of each service on servers of their own, what is done to them, and what they hold. The first of each kind is never killed,
 * only frozen.
 */
import { execFile } from 'node:child_process';
import { readdirSync, readlinkSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { NODE_OPTIONS } from '@meterline/local-stack';
import type { Warehouse } from '@meterline/warehouse';
import type { Fixture } from '../faults/fixture.js';
import { SeededRandom } from '../faults/stream.js';
import { residentMiB } from '../harness/programs.js';
import { openJobs, pause } from '../harness/queue.js';
import { type ServiceProcess, withConstants } from '../harness/services.js';
import { select } from '../harness/stack.js';

const CLOCK = fileURLToPath(new URL('../../test/faults/skewed-clock.mjs', import.meta.url));
/** An hour of two minutes. */
const CLOCK_RATE = 30;
/** Longer than the lock of a job. */
const FROZEN_MS = 18_000;
const AWAY_MS = 1_500;

/** The processes that a run does not replace, once it has killed ClickHouse and Redis. */
const LASTING_SERVICES = ['ingest 1', 'collector 1', 'query 1'];
export const LASTING = [...LASTING_SERVICES, 'ClickHouse', 'Redis'];

interface Process extends ServiceProcess {
  readonly url?: string;
}
type Kind = 'ingest' | 'collector' | 'query';

export class Deployment {
  readonly #fixture: Fixture;
  readonly #random: SeededRandom;
  readonly #rightAt: number;
  readonly #starts: Readonly<Record<Kind, () => Promise<Process>>>;
  readonly #processes = new Map<string, Process>();

  /** @param rightAt when the workers' clocks, which are behind and run faster, are right */
  constructor(fixture: Fixture, seed: number, rightAt: number) {
    this.#fixture = fixture;
    this.#random = new SeededRandom(seed + 1);
    this.#rightAt = rightAt;
    const { product } = fixture;
    const clock = {
      NODE_OPTIONS: `${NODE_OPTIONS.ingest} --import=${CLOCK}`,
      METERLINE_TEST_CLOCK_RATE: String(CLOCK_RATE),
      METERLINE_TEST_CLOCK_RIGHT_AT: String(rightAt),
    };
    this.#starts = {
      ingest: () => product.startIngest(withConstants(clock, { maintenanceEveryMs: 2_000 * CLOCK_RATE })),
      collector: () => product.startCollector(),
      query: () => product.startQuery(),
    };
  }

  async start(): Promise<void> {
    for (const kind of ['ingest', 'collector', 'query'] as const) {
      for (const n of [1, 2]) this.#processes.set(`${kind} ${n}`, await this.#starts[kind]());
    }
  }

  /** What a worker's clock shows now. */
  readonly workerTime = (): number => Math.floor(this.#rightAt + (Date.now() - this.#rightAt) * CLOCK_RATE);

  /** The address of one of the two processes of a kind, whichever. */
  url(kind: 'collector' | 'query'): string {
    return this.#processes.get(`${kind} ${this.#random.integer(1, 2)}`)?.url ?? '';
  }

  /** By the name of the process. */
  get pids(): Readonly<Record<string, number>> {
    const { clickhouse, redis } = this.#fixture;
    const services = [...this.#processes].map(([name, { pid }]) => [name, pid]);
    return { ...Object.fromEntries(services), ClickHouse: clickhouse.running.pid, Redis: redis.running.pid };
  }

  /** Kills each server once, so that both live for the rest; then kills or freezes a process of ours at a time. @throws AbortError */
  async inject(everyMs: number, signal: AbortSignal, say: (what: string) => void): Promise<void> {
    const servers = [this.#fixture.clickhouse, this.#fixture.redis];
    for (;;) {
      await pause(everyMs, signal);
      const server = servers.shift();
      const kind = this.#random.pick(['ingest', 'collector', 'query'] as const);
      const freezes = this.#random.chance(0.3);
      const name = freezes ? `${kind} ${this.#random.integer(1, 2)}` : `${kind} 2`;
      if (server) {
        say(`kill -9 of ${servers.length === 1 ? 'ClickHouse' : 'Redis'}`);
        await server.kill();
        await pause(AWAY_MS, signal);
        await server.start();
      } else if (freezes) {
        say(`${name} frozen for ${FROZEN_MS / 1000} s`);
        const { pid = 0 } = this.#processes.get(name) ?? {};
        process.kill(pid, 'SIGSTOP');
        await pause(FROZEN_MS, signal).finally(() => process.kill(pid, 'SIGCONT'));
      } else {
        say(`kill -9 of ${name}`);
        await this.#processes.get(name)?.kill();
        await pause(AWAY_MS, signal);
        this.#processes.set(name, await this.#starts[kind]());
      }
    }
  }
}

const MINUTE_MS = 60_000;

/** Figures by their names, among them `minute`. */
export type Row = Readonly<Record<string, number>>;

/**
 * Notes each minute memory, open files, connections, disk, queue and parts. Memory is the least of a minute's seconds: what is held, without
 * what is about to be collected.
 * @throws AbortError
 */
export async function watch(
  deployment: Deployment,
  { product: { queue, redis, warehouse }, directory }: Fixture,
  sent: () => number,
  onRow: (row: Row) => void,
  signal: AbortSignal,
): Promise<void> {
  const started = Date.now();
  for (;;) {
    const least: Record<string, number> = {};
    for (const until = Date.now() + MINUTE_MS; Date.now() < until; ) {
      await pause(1_000, signal);
      for (const [name, pid] of Object.entries(deployment.pids)) {
        // A process may have ended.
        const mib = Math.round(10 * (residentMiB(pid, 'VmRSS') ?? Number.POSITIVE_INFINITY)) / 10;
        least[`${name}, MiB`] = Math.min(mib, least[`${name}, MiB`] ?? mib);
      }
    }
    const open = LASTING_SERVICES.flatMap((name) => openFiles(deployment.pids[name] ?? 0));
    const [keys, jobs, parts, disk] = await Promise.all([
      redis.dbsize().catch(() => Number.NaN),
      openJobs(queue).catch(() => Number.NaN),
      activeParts(warehouse).catch(() => Number.NaN),
      diskKiB(directory),
    ]);
    onRow({
      minute: Math.round((10 * (Date.now() - started)) / MINUTE_MS) / 10,
      ...least,
      'open files of our three': open.length,
      'their connections': open.filter((file) => file.startsWith('socket:')).length,
      'disk, MiB': Math.round(disk / 1024),
      'keys in Redis': keys,
      'jobs in the queue': jobs,
      'parts in ClickHouse': parts,
      'events, thousands': Math.round(sent() / 1000),
    });
  }
}

/** By least squares. @returns by how many percent of its mean the figure grows in an hour, and the standard error of that */
export function growth(rows: readonly Row[], name: string): { readonly percent: number; readonly error: number } {
  const points = rows
    .map(({ minute = 0, [name]: y = Number.NaN }) => ({ x: minute / 60, y }))
    .filter(({ y }) => y >= 0);
  const sum = (of: (point: { x: number; y: number }) => number) => points.reduce((all, point) => all + of(point), 0);
  const [hours, value] = [sum(({ x }) => x) / points.length, sum(({ y }) => y) / points.length];
  const squares = sum(({ x }) => (x - hours) ** 2);
  const slope = sum(({ x, y }) => (x - hours) * (y - value)) / squares;
  const scatter = sum(({ x, y }) => (y - value - slope * (x - hours)) ** 2) / (points.length - 2);
  return { percent: (100 * slope) / value, error: (100 * Math.sqrt(scatter / squares)) / value };
}

/** A process may have ended, and a file be closed, while it is being looked at. */
function ifThere<T>(look: () => T): T | undefined {
  try {
    return look();
  } catch {
    return undefined;
  }
}

function openFiles(pid: number): string[] {
  const files = ifThere(() => readdirSync(`/proc/${pid}/fd`)) ?? [];
  return files.flatMap((file) => ifThere(() => readlinkSync(`/proc/${pid}/fd/${file}`)) ?? []);
}

async function activeParts(warehouse: Warehouse): Promise<number> {
  const query = 'SELECT count() AS parts FROM system.parts WHERE active AND database = currentDatabase()';
  return Number((await select<{ parts: string }>(warehouse, query))[0]?.parts);
}

/** `du` complains of files that vanish meanwhile. */
function diskKiB(directory: string): Promise<number> {
  return new Promise((resolve) => {
    execFile('du', ['-sk', directory], (_, output) => resolve(Number.parseInt(output, 10)));
  });
}
