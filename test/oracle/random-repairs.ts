/** Recomputes dirty hours while histories play: none, some, or all; in complete and in interrupted steps. */
import { DIRTY_LIMITS, recomputeDirtyHours, type Warehouse } from '@meterline/warehouse';
import fc from 'fast-check';
import { recomputeAll } from '../harness/late-events.js';
import { breakOff } from './random-sealing.js';

/** What a killed maintainer leaves behind: nothing, hours without their days, or rows whose marks are still there. */
const CALLS_OF_A_STEP = 3;
/** Half the times marks stay as they are. */
const MOMENT = fc.constantFrom('none', 'none', 'none', 'some', 'killed', 'all');
/** More than a run has; then they come again. */
const MOMENTS = 1_000;

export class RandomRepairs {
  readonly #shards: readonly Warehouse[];
  readonly #moments: readonly string[];
  #passed = 0;

  constructor(shards: readonly Warehouse[], seed: number) {
    this.#shards = shards;
    this.#moments = fc.sample(MOMENT, { seed, numRuns: MOMENTS });
  }

  async advance(): Promise<void> {
    this.#passed += 1;
    const moment = this.#moments[this.#passed % MOMENTS];
    const calls = this.#passed % CALLS_OF_A_STEP;
    if (moment === 'none') return;
    for (const shard of this.#shards) {
      const some = (warehouse: Warehouse) => recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 5 });
      if (moment === 'some') await some(shard);
      if (moment === 'killed') await breakOff([shard], calls, ([mortal = shard]) => some(mortal));
      if (moment === 'all') await recomputeAll(shard);
    }
  }
}
