/**
 * Compares sealed rollup rows (sums of usage and cost that queries read instead of events) with their events, one day at a time, and repairs
 * differences. Skips dirty hours, in which late events have arrived: queries do not read the rows of these hours, and a worker will
 * recompute them.
 * A row with a higher version than its events imply is always compared. A restored backup may contain such rows. A worker clears the dirty
 * mark of their hour but cannot replace them, because its own row has a lower version.
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

/** Number of comparisons that must find a difference, because a worker stores late events shortly before it marks their hours as dirty. */
const RECHECKS = 3;
const RECHECK_MS = 500;

export interface AuditOptions {
  readonly shards: Shards;
  readonly accountId: string | undefined;
  readonly window: Window;
  readonly repair: boolean;
  /** Whether to compare the rollup rows of dirty hours as well. Needed if their events are about to be deleted. */
  readonly includesDirty?: boolean;
  readonly signal: AbortSignal;
  readonly onProgress: OnProgress;
  readonly recheckMs?: number;
}

interface ShardAuditOptions extends AuditOptions {
  readonly warehouse: Warehouse;
}

export interface AuditResult {
  readonly days: number;
  /** The start of the comparison. Set only if earlier events in the window have been dropped. */
  readonly comparedFrom: EpochMs | undefined;
  readonly differences: readonly RollupDifference[];
  readonly stillDifferent: readonly RollupDifference[];
}

type Sealed = Readonly<Record<Grain, EpochMs>>;

/**
 * Audits the rollups of all shards.
 * Crash order: each day is compared, compared again after a delay, and then repaired, one insert per rollup row. A crash leaves each row
 * either unchanged or correct. After a crash between the repair of an hour and the repair of its day, the day still differs, and the next
 * audit repairs it.
 */
export async function auditRollups(options: AuditOptions): Promise<AuditResult> {
  const { shards, onProgress } = options;
  const results: AuditResult[] = [];
  const daysDone = () => results.reduce((sum, { days }) => sum + days, 0);
  for (const warehouse of shards.all) {
    const before = daysDone();
    // The total does not include the days of later shards, because their number is not known yet.
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
  // Only sealed hours can differ, because queries read other hours from the events.
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

/** Repairs differences. Replaces hours first, because days are computed from hours. Returns the remaining differences. */
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

/** Returns a predicate: whether queries read a rollup row. Queries do not read it while its hour, or an hour of its day, is dirty. */
function isReadFrom(grain: Grain, dirty: readonly RollupKey[]): (rollup: RollupKey) => boolean {
  const length = GRAIN_MS[grain];
  const nameOf = ({ accountId, bucket }: RollupKey) => `${bucket - (bucket % length)} ${accountId}`;
  const unread = new Set(dirty.map(nameOf));
  return (rollup) => !unread.has(nameOf(rollup));
}

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
