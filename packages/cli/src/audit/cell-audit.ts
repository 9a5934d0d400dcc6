/** Compares the sealed cells of a window with the events they come from, a day at a time. */
import { setTimeout as delay } from 'node:timers/promises';
import { type EpochMs, MS_PER_DAY, type Window } from '@meterline/catalog';
import {
  type AuditScope,
  type CellDifference,
  GRAIN_MS,
  GRAINS,
  type Grain,
  readAuditDays,
  readCellDifferences,
  readWatermarks,
  replaceCell,
  type Warehouse,
} from '@meterline/warehouse';

/** A worker that stores late events repairs their cells within moments; a difference that outlasts these is one. */
const RECHECKS = 3;
const RECHECK_MS = 500;

export interface CellAuditOptions {
  readonly warehouse: Warehouse;
  readonly accountId: string | undefined;
  readonly window: Window;
  readonly signal: AbortSignal;
  readonly recheckMs?: number;
}

export class CellAudit {
  readonly #options: CellAuditOptions;
  readonly #sealed: Readonly<Record<Grain, EpochMs>>;
  /** The days that hold anything, ascending. */
  readonly days: readonly EpochMs[];

  private constructor(options: CellAuditOptions, sealed: Readonly<Record<Grain, EpochMs>>, days: readonly EpochMs[]) {
    this.#options = options;
    this.#sealed = sealed;
    this.days = days;
  }

  /** What is not sealed is answered from the events themselves, so only what is sealed can differ. */
  static async begin(options: CellAuditOptions): Promise<CellAudit> {
    const { hourly, daily } = await readWatermarks(options.warehouse);
    const sealed = { hourly: hourly.sealedUntil, daily: daily.sealedUntil };
    const { startTime, endTime } = wholeBuckets(options.window, 'hourly', sealed.hourly);
    const scope = { accountId: options.accountId, window: { startTime, endTime } };
    const days = startTime < endTime ? await readAuditDays(options.warehouse, scope) : [];
    return new CellAudit(options, sealed, days);
  }

  /** The cells of one day that differ from the truth, and still do after a while. */
  async differences(day: EpochMs): Promise<CellDifference[]> {
    const { recheckMs = RECHECK_MS, signal } = this.#options;
    let found = await this.#compare(day);
    for (let checks = 1; found.length > 0 && checks < RECHECKS && !signal.aborted; checks += 1) {
      await delay(recheckMs, undefined, { signal }).catch(() => undefined);
      const seen = new Set(found.map(keyOf));
      found = (await this.#compare(day)).filter((difference) => seen.has(keyOf(difference)));
    }
    return found;
  }

  /**
   * Makes the cells hold what they should, hours before their days, which are computed from them.
   * @returns what still differs
   */
  async repair(day: EpochMs, differences: readonly CellDifference[]): Promise<CellDifference[]> {
    const ahead = new Set(differences.filter(({ isAhead }) => isAhead).map(cellOf));
    for (const grain of GRAINS) {
      const cells = new Map(differences.filter((each) => each.grain === grain).map((each) => [cellOf(each), each]));
      for (const [cell, difference] of cells) await replaceCell(this.#options.warehouse, difference, ahead.has(cell));
    }
    return this.#compare(day);
  }

  async #compare(day: EpochMs): Promise<CellDifference[]> {
    const { warehouse, accountId, window } = this.#options;
    const found: CellDifference[] = [];
    for (const grain of GRAINS) {
      const ofDay = {
        startTime: Math.max(day, window.startTime),
        endTime: Math.min(day + MS_PER_DAY, window.endTime),
      };
      const scope: AuditScope = { accountId, window: wholeBuckets(ofDay, grain, this.#sealed[grain]) };
      if (scope.window.startTime < scope.window.endTime) {
        found.push(...(await readCellDifferences(warehouse, grain, scope)));
      }
    }
    return found;
  }
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
