/**
 * Compares the sealed rollup rows of a window with the events they come from, a day at a time, and repairs what differs. Rollup
 * rows that no query reads, because their hours are marked as dirty, are left out: a worker recomputes them. It cannot replace one whose
 * version is above the truth's, as a restored backup may have it, and clears the mark all the same: such a row is not left out.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  type AuditScope,
  GRAIN_MS,
  GRAINS,
  type Grain,
  type RollupDifference,
  type RollupKey,
  readAuditDays,
  readBounds,
  readMarkedHours,
  readRollupDifferences,
  replaceRollup,
  type Shards,
  type Warehouse,
} from '@meterline/warehouse';
import type { OnProgress } from './operation.js';

/** A worker that stores late events marks their hours within moments; a difference that outlasts these is one. */
const RECHECKS = 3;
const RECHECK_MS = 500;

export interface AuditOptions {
  readonly shards: Shards;
  /** Undefined: every account. */
  readonly accountId: string | undefined;
  readonly window: Window;
  /** Replace the rollup rows that differ; else write nothing. */
  readonly repair: boolean;
  /** Compare rollup rows of dirty hours, too: nobody will read these from the events any more. */
  readonly includesDirty?: boolean;
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
  readonly differences: readonly RollupDifference[];
  /** What still differs after the repair. */
  readonly stillDifferent: readonly RollupDifference[];
}

type Sealed = Readonly<Record<Grain, EpochMs>>;

/**
 * Crash order: a day is compared, compared again after a while, and only then repaired, each rollup row in one insert that
 * replaces it. A crash leaves each rollup row as it was or as it should be. A crash between an hour's rollup row and its day's
 * leaves a day that still differs; running the audit again finds and repairs it. Without `repair` nothing is written.
 */
export async function auditRollups(options: AuditOptions): Promise<AuditResult> {
  const { shards, onProgress } = options;
  const results: AuditResult[] = [];
  const daysDone = () => results.reduce((sum, { days }) => sum + days, 0);
  for (const warehouse of shards.all) {
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
  const { hourly, daily, droppedBefore } = await readBounds(warehouse);
  // What is not sealed is answered from the events themselves, so only what is sealed can differ.
  const sealed = { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
  const comparedFrom = window.startTime < droppedBefore ? droppedBefore : undefined;
  const kept = { ...window, startTime: comparedFrom ?? window.startTime };
  const sealedWindow = wholeBuckets(kept, 'hourly', sealed.hourly);
  const isEmpty = sealedWindow.startTime >= sealedWindow.endTime;
  const days = isEmpty ? [] : await readAuditDays(warehouse, { accountId, window: sealedWindow });
  const differences: RollupDifference[] = [];
  const stillDifferent: RollupDifference[] = [];
  let done = 0;
  onProgress(done, days.length);
  for (const day of days) {
    if (signal.aborted) break;
    const found = await lastingDifferences(options, sealed, day);
    differences.push(...found);
    if (repair && found.length > 0) stillDifferent.push(...(await repairDay(options, sealed, day, found)));
    done += 1;
    onProgress(done, days.length);
  }
  return { days: done, comparedFrom, differences, stillDifferent };
}

/** The rollup rows of one day that differ from the events, and still do after a while. */
async function lastingDifferences(
  options: ShardAuditOptions,
  sealed: Sealed,
  day: EpochMs,
): Promise<RollupDifference[]> {
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
  differences: readonly RollupDifference[],
): Promise<RollupDifference[]> {
  const ahead = new Set(differences.filter(({ isAhead }) => isAhead).map(rollupOf));
  for (const grain of GRAINS) {
    const rollups = new Map(differences.filter((each) => each.grain === grain).map((each) => [rollupOf(each), each]));
    for (const [rollup, difference] of rollups) await replaceRollup(options.warehouse, difference, ahead.has(rollup));
  }
  return lastingDifferences(options, sealed, day);
}

async function compareDay(options: ShardAuditOptions, sealed: Sealed, day: EpochMs): Promise<RollupDifference[]> {
  const { warehouse, accountId, window, includesDirty = false } = options;
  const ofDay = { startTime: Math.max(day, window.startTime), endTime: Math.min(day + MS_PER_DAY, window.endTime) };
  const found: RollupDifference[] = [];
  const wholeDay = { startTime: day, endTime: day + MS_PER_DAY };
  const dirty = includesDirty ? [] : await readMarkedHours(warehouse, 'all', wholeDay);
  for (const grain of GRAINS) {
    const isRead = isReadFrom(grain, dirty);
    const scope: AuditScope = { accountId, window: wholeBuckets(ofDay, grain, sealed[grain]) };
    if (scope.window.startTime < scope.window.endTime) {
      const all = await readRollupDifferences(warehouse, grain, scope);
      found.push(...all.filter((difference) => difference.isAhead || isRead(difference)));
    }
  }
  return found;
}

/** Whether queries read a rollup row of this grain: not if its hour is dirty, or an hour of its day. */
function isReadFrom(grain: Grain, dirty: readonly RollupKey[]): (rollup: RollupKey) => boolean {
  const length = GRAIN_MS[grain];
  const nameOf = ({ accountId, bucket }: RollupKey) => `${bucket - (bucket % length)} ${accountId}`;
  const unread = new Set(dirty.map(nameOf));
  return (rollup) => !unread.has(nameOf(rollup));
}

/** The sealed buckets that lie in the window whole. */
function wholeBuckets({ startTime, endTime }: Window, grain: Grain, sealedUntil: EpochMs): Window {
  const length = GRAIN_MS[grain];
  const end = Math.min(endTime, sealedUntil);
  return { startTime: Math.ceil(startTime / length) * length, endTime: Math.floor(end / length) * length };
}

function rollupOf({ grain, accountId, bucket }: RollupDifference): string {
  return JSON.stringify([grain, accountId, bucket]);
}

function keyOf(difference: RollupDifference): string {
  return JSON.stringify([rollupOf(difference), difference.part]);
}
