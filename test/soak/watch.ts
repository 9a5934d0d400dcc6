/** What the deployment holds, noted each minute: memory, open files, connections, disk, queue, parts. */
import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { Warehouse } from '@meterline/warehouse';
import type { Redis } from 'ioredis';
import { pause } from '../faults/waiting.js';
import { select } from '../harness/stack.js';
import { type Deployment, LASTING_SERVICES } from './deployment.js';

const MIB = 2 ** 20;
const MINUTE_MS = 60_000;

/** Figures by their names, among them `minute`. */
export type Row = Readonly<Record<string, number>>;

export interface Watched {
  readonly deployment: Deployment;
  readonly directory: string;
  readonly redis: Redis;
  readonly warehouse: Warehouse;
  readonly openJobs: () => Promise<number>;
  readonly sent: () => number;
}

/** Memory is the least of a minute's seconds: what is held, without what is about to be collected. @throws AbortError */
export async function watch(watched: Watched, onRow: (row: Row) => void, signal: AbortSignal): Promise<void> {
  const { deployment, directory, redis, warehouse, openJobs, sent } = watched;
  const started = Date.now();
  for (;;) {
    const least: Record<string, number> = {};
    for (const until = Date.now() + MINUTE_MS; Date.now() < until; ) {
      await pause(1_000, signal);
      for (const [name, pid] of Object.entries(deployment.pids)) {
        const mib = Math.round(residentBytes(pid) / MIB);
        least[`${name}, MiB`] = Math.min(mib, least[`${name}, MiB`] ?? mib);
      }
    }
    const open = LASTING_SERVICES.flatMap((name) => openFiles(deployment.pids[name] ?? 0));
    const [keys, jobs, parts, disk] = await Promise.all([
      redis.dbsize().catch(() => Number.NaN),
      openJobs().catch(() => Number.NaN),
      activeParts(warehouse).catch(() => Number.NaN),
      diskBytes(directory),
    ]);
    onRow({
      minute: Math.round((10 * (Date.now() - started)) / MINUTE_MS) / 10,
      ...least,
      'open files of our three': open.length,
      'their connections': open.filter((file) => file.startsWith('socket:')).length,
      'disk, MiB': Math.round(disk / MIB),
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

function residentBytes(pid: number): number {
  const status = ifThere(() => readFileSync(`/proc/${pid}/status`, 'utf8')) ?? '';
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1] ?? Number.POSITIVE_INFINITY) * 1024;
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
function diskBytes(directory: string): Promise<number> {
  return new Promise((resolve) => {
    execFile('du', ['-sk', directory], (_, output) => resolve(Number.parseInt(output, 10) * 1024));
  });
}
