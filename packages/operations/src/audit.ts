/**
 * Compares the sealed cells of a window with the events they come from, a day at a time, and repairs what differs. Cells that
 * no question reads, because their hours are marked as stale, are left out: a worker repairs them.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  type AuditScope,
  type Cell,
  type CellDifference,
  GRAIN_MS,
  GRAINS,
  type Grain,
  readAllStaleHours,
  readAuditDays,
  readCellDifferences,
  readRetentionBounds,
  readWatermarks,
  replaceCell,
  type Shards,
  type Warehouse,
} from '@meterline/warehouse';
import type { OnProgress } from './operation-error.js';
import type { RenewStamps } from './renewed-stamps.js';

/** A worker that stores late events marks their hours within moments; a difference that outlasts these is one. */
const RECHECKS = 3;
const RECHECK_MS = 500;

export interface AuditOptions {
  readonly shards: Shards;
  /** Undefined: every account. */
  readonly accountId: string | undefined;
  readonly window: Window;
  /** Replace the cells that differ, and then renew the stamps of their accounts; undefined: write nothing. */
  readonly repair: RenewStamps | undefined;
  /** Compare cells of stale hours, too: nobody will read these from the events any more. */
  readonly includesStale?: boolean;
  /** Ends the audit between two days. */
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
  readonly recheckMs?: number;
}

interface ShardAuditOptions extends AuditOptions {
  /** The shard's own tables. */
  readonly warehouse: Warehouse;
}

export interface AuditResult {
  /** Days that were compared. */
  readonly days: number;
  /** Where the comparison began, if events before, which the window asks for, have been dropped. */
  readonly comparedFrom: EpochMs | undefined;
  readonly differences: readonly CellDifference[];
  /** What still differs after the repair. */
  readonly stillDifferent: readonly CellDifference[];
}

type Sealed = Readonly<Record<Grain, EpochMs>>;

/**
 * Crash order: a day is compared, compared again after a while, and only then repaired, each cell in one insert that
 * replaces it; then stamps are renewed. A crash leaves each cell as it was or as it should be. A crash between an hour's cell and its day's leaves
 * a day that still differs; running the audit again finds and repairs it. A crash before the stamps are renewed leaves answers
 * that were kept before for an hour at most. Without `repair` nothing is written.
 */
export async function auditCells(options: AuditOptions): Promise<AuditResult> {
  const { shards, accountId, onProgress } = options;
  const wanted = accountId === undefined ? shards.all : [shards.of(accountId)];
  const results: AuditResult[] = [];
  const daysDone = () => results.reduce((sum, { days }) => sum + days, 0);
  for (const warehouse of wanted) {
    const before = daysDone();
    // How many days the other shards have is not known yet.
    const ofShard: OnProgress = (done, total) => onProgress(before + done, before + total);
    results.push(await auditShard({ ...options, warehouse, onProgress: ofShard }));
  }
  const comparedFrom = Math.max(...results.map((result) => result.comparedFrom ?? 0));
  return {
    days: daysDone(),
    comparedFrom: comparedFrom > 0 ? comparedFrom : undefined,
    differences: results.flatMap(({ differences }) => differences),
    stillDifferent: results.flatMap(({ stillDifferent }) => stillDifferent),
  };
}

async function auditShard(options: ShardAuditOptions): Promise<AuditResult> {
  const { warehouse, accountId, window, repair, signal, onProgress } = options;
  const [{ hourly, daily }, { droppedBefore }] = await Promise.all([
    readWatermarks(warehouse),
    readRetentionBounds(warehouse),
  ]);
  // What is not sealed is answered from the events themselves, so only what is sealed can differ.
  const sealed = { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
  const comparedFrom = window.startTime < droppedBefore ? droppedBefore : undefined;
  const kept = { ...window, startTime: comparedFrom ?? window.startTime };
  const sealedWindow = wholeBuckets(kept, 'hourly', sealed.hourly);
  const isEmpty = sealedWindow.startTime >= sealedWindow.endTime;
  const days = isEmpty ? [] : await readAuditDays(warehouse, { accountId, window: sealedWindow });
  const differences: CellDifference[] = [];
  const stillDifferent: CellDifference[] = [];
  let done = 0;
  onProgress(done, days.length);
  for (const day of days) {
    if (signal.aborted) break;
    const found = await lastingDifferences(options, sealed, day);
    differences.push(...found);
    if (repair && found.length > 0) {
      stillDifferent.push(...(await repairDay(options, sealed, day, found)));
      await repair([...new Set(found.map((difference) => difference.accountId))]);
    }
    done += 1;
    onProgress(done, days.length);
  }
  return { days: done, comparedFrom, differences, stillDifferent };
}

/** The cells of one day that differ from the events, and still do after a while. */
async function lastingDifferences(options: ShardAuditOptions, sealed: Sealed, day: EpochMs): Promise<CellDifference[]> {
  const { recheckMs = RECHECK_MS, signal } = options;
  let found = await compareDay(options, sealed, day);
  for (let checks = 1; found.length > 0 && checks < RECHECKS && !signal.aborted; checks += 1) {
    await delay(recheckMs, undefined, { signal }).catch(() => undefined);
    const seen = new Set(found.map(keyOf));
    found = (await compareDay(options, sealed, day)).filter((difference) => seen.has(keyOf(difference)));
  }
  return found;
}

/** Replaces hours before their days, which are computed from them. @returns what still differs */
async function repairDay(
  options: ShardAuditOptions,
  sealed: Sealed,
  day: EpochMs,
  differences: readonly CellDifference[],
): Promise<CellDifference[]> {
  const ahead = new Set(differences.filter(({ isAhead }) => isAhead).map(cellOf));
  for (const grain of GRAINS) {
    const cells = new Map(differences.filter((each) => each.grain === grain).map((each) => [cellOf(each), each]));
    for (const [cell, difference] of cells) await replaceCell(options.warehouse, difference, ahead.has(cell));
  }
  return compareDay(options, sealed, day);
}

async function compareDay(options: ShardAuditOptions, sealed: Sealed, day: EpochMs): Promise<CellDifference[]> {
  const { warehouse, accountId, window, includesStale = false } = options;
  const ofDay = { startTime: Math.max(day, window.startTime), endTime: Math.min(day + MS_PER_DAY, window.endTime) };
  const found: CellDifference[] = [];
  const stale = includesStale ? [] : await readAllStaleHours(warehouse, { startTime: day, endTime: day + MS_PER_DAY });
  for (const grain of GRAINS) {
    const isRead = isReadFrom(grain, stale);
    const scope: AuditScope = { accountId, window: wholeBuckets(ofDay, grain, sealed[grain]) };
    if (scope.window.startTime < scope.window.endTime) {
      found.push(...(await readCellDifferences(warehouse, grain, scope)).filter(isRead));
    }
  }
  return found;
}

/** Whether questions read a cell of this grain: not if its hour is stale, or an hour of its day. */
function isReadFrom(grain: Grain, stale: readonly Cell[]): (cell: Cell) => boolean {
  const length = GRAIN_MS[grain];
  const nameOf = ({ accountId, bucket }: Cell) => `${bucket - (bucket % length)} ${accountId}`;
  const unread = new Set(stale.map(nameOf));
  return (cell) => !unread.has(nameOf(cell));
}

/** The sealed buckets that lie in the window whole. */
function wholeBuckets({ startTime, endTime }: Window, grain: Grain, sealedUntil: EpochMs): Window {
  const length = GRAIN_MS[grain];
  const end = Math.min(endTime, sealedUntil);
  return { startTime: Math.ceil(startTime / length) * length, endTime: Math.floor(end / length) * length };
}

function cellOf({ grain, accountId, bucket }: CellDifference): string {
  return JSON.stringify([grain, accountId, bucket]);
}

function keyOf(difference: CellDifference): string {
  return JSON.stringify([cellOf(difference), difference.part]);
}
