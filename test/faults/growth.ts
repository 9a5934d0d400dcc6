/** Figures of a long run, minute by minute: memory, open files, disk, queue and parts; and whether memory grows. */
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { markdownTable, residentMiB } from '../harness/programs.js';
import { openJobs, pause } from '../harness/queue.js';
import { select } from '../harness/stack.js';
import type { Fixture } from './fixture.js';

const MINUTE_MS = 60_000;
const WARM_UP_MINUTES = 10;
const JUDGED_FROM_MINUTES = 30;
/** Allowed growth in an hour, beyond two standard errors. */
const MAX_GROWTH_PERCENT = 2;
/** The limit of each process, in a run of any length. */
const MAX_MIB = 2_048;
const PARTS = 'SELECT count() AS parts FROM system.parts WHERE active AND database = currentDatabase()';

/** Figures by their names, among them `minute`. */
export type Row = Readonly<Record<string, number>>;

/**
 * Reports a row each minute, with the memory of each process: the least of the samples, without what is about to be collected.
 * @throws AbortError
 */
export async function watch(
  pids: () => ReadonlyMap<string, number>,
  { product: { queue, redis, warehouse }, directory }: Fixture,
  onRow: (row: Row) => void,
  endsAt: number,
  signal: AbortSignal,
): Promise<void> {
  const started = Date.now();
  while (Date.now() + MINUTE_MS / 2 < endsAt) {
    const least: Record<string, number> = {};
    for (const until = Date.now() + MINUTE_MS; Date.now() < until; ) {
      await pause(1_000, signal);
      for (const [name, pid] of pids()) {
        // A process may have ended.
        const mib = Math.round(10 * (residentMiB(pid, 'VmRSS') ?? Number.POSITIVE_INFINITY)) / 10;
        least[`${name}, MiB`] = Math.min(mib, least[`${name}, MiB`] ?? mib);
      }
    }
    const [keys = Number.NaN, jobs = Number.NaN, [parts] = []] = await Promise.all([
      redis.dbsize().catch(() => undefined),
      openJobs(queue).catch(() => undefined),
      select<{ parts: string }>(warehouse, PARTS).catch(() => undefined),
    ]);
    const open = [...pids()].filter(([name]) => name.endsWith(' 1')).map(([, pid]) => openFiles(pid));
    onRow({
      minute: Math.round((10 * (Date.now() - started)) / MINUTE_MS) / 10,
      ...least,
      'open files of the lasting services': open.reduce((sum, files) => sum + files, 0),
      'disk, MiB': Number.parseInt(String(spawnSync('du', ['-sm', directory]).stdout), 10),
      'keys in Redis': keys,
      'jobs in the queue': jobs,
      'parts in ClickHouse': Number(parts?.parts),
    });
  }
}

/** Sockets are files. */
function openFiles(pid: number): number {
  return readdirSync(`/proc/${pid}/fd`).length;
}

/** A Markdown table of the figures after the warm-up. */
export function growthTable(rows: readonly Row[]): string {
  const settled = rows.filter(isSettled);
  if (settled.length < 3) return 'The run was too short to judge growth.';
  const cells = Object.keys(rows[0] ?? {}).map((column) => {
    const each = settled.map(({ [column]: figure = 0 }) => figure);
    return [column, each[0] ?? 0, each.at(-1) ?? 0, Math.max(...each), growth(settled, column).text];
  });
  return markdownTable(['figure', `after ${WARM_UP_MINUTES} min`, 'at the end', 'most', '% an hour'], cells.slice(1));
}

/**
 * @param lasting processes that are never replaced, and killed only at the beginning of a run
 * @returns those with too much memory and, in a run that is long enough, those whose memory grows
 */
export function problemsOf(rows: readonly Row[], minutes: number, lasting: readonly string[]): string[] {
  return lasting
    .map((name) => `${name}, MiB`)
    .flatMap((column) => {
      const most = Math.max(...rows.map(({ [column]: figure = Number.POSITIVE_INFINITY }) => figure));
      const { least, text } = growth(rows.filter(isSettled), column);
      const grows = minutes >= JUDGED_FROM_MINUTES && least > MAX_GROWTH_PERCENT;
      return [
        ...(most > MAX_MIB ? [`${column}: ${most}`] : []),
        ...(grows ? [`${column}: grows by ${text} % in an hour`] : []),
      ];
    });
}

function isSettled({ minute = 0 }: Row): boolean {
  return minute > WARM_UP_MINUTES;
}

/**
 * Growth in percent of the mean in an hour, by least squares.
 * @returns it with its standard error as `text`, and the `least` that it is with two standard errors
 */
function growth(rows: readonly Row[], column: string) {
  const points = rows
    .map(({ minute = 0, [column]: y = Number.NaN }) => ({ x: minute / 60, y }))
    .filter(({ y }) => y >= 0);
  const sum = (of: (point: { x: number; y: number }) => number) => points.reduce((all, point) => all + of(point), 0);
  const [hours, value] = [sum(({ x }) => x) / points.length, sum(({ y }) => y) / points.length];
  const squares = sum(({ x }) => (x - hours) ** 2);
  const slope = sum(({ x, y }) => (x - hours) * (y - value)) / squares;
  const scatter = sum(({ x, y }) => (y - value - slope * (x - hours)) ** 2) / (points.length - 2);
  const [percent, error] = [(100 * slope) / value, (100 * Math.sqrt(scatter / squares)) / value];
  return { least: percent - 2 * error, text: `${percent.toFixed(1)} ± ${error.toFixed(1)}` };
}
