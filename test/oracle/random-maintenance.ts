/** Seals, and recomputes dirty hours, while histories play: before, between and after their events, in complete and in interrupted steps. */
import { DIRTY_LIMITS, recomputeDirtyHours, sealNext, type Warehouse } from '@meterline/warehouse';
import fc from 'fast-check';
import { pausing } from '../harness/interleaving.js';
import { recomputeAll } from '../harness/stack.js';
import { ANCHORS, distance } from './histories.js';

/** What a process that is killed leaves behind: nothing, what readers respect but do not use yet, or all but its last call. */
const CALLS_OF_A_STEP = 3;
/** Half the times dirty hours stay as they are. */
const RECOMPUTED = fc.constantFrom('none', 'none', 'none', 'some', 'killed', 'all');

export class RandomMaintenance {
  readonly #shards: readonly Warehouse[];
  /** The next watermarks, ascending, as epoch milliseconds. */
  readonly #watermarks: number[];
  readonly #recomputed: readonly string[];
  readonly #rounds: number;
  #passed = 0;

  /** @param rounds after how many calls of {@link advance} all anchors are sealed */
  constructor(shards: readonly Warehouse[], seed: number, rounds: number) {
    this.#shards = shards;
    this.#rounds = rounds;
    const perAnchor = Math.ceil(rounds / ANCHORS.length);
    const around = fc.sample(distance, { seed, numRuns: perAnchor * ANCHORS.length });
    this.#watermarks = around
      .map((milliseconds, index) => (ANCHORS[index % ANCHORS.length] ?? 0) + milliseconds)
      .sort((a, b) => a - b);
    this.#recomputed = fc.sample(RECOMPUTED, { seed, numRuns: rounds });
  }

  async advance(): Promise<void> {
    this.#passed += 1;
    await this.#seal(this.#passed % CALLS_OF_A_STEP);
    await this.#recompute(this.#passed % CALLS_OF_A_STEP);
  }

  /** Moves the watermarks past the next moments. Every second time, a sealer first dies in the middle of a step. */
  async #seal(calls: number): Promise<void> {
    const isPassed = Math.floor((this.#passed / this.#rounds) * this.#watermarks.length);
    const due = this.#watermarks[Math.min(isPassed, this.#watermarks.length - 1)] ?? 0;
    if (this.#passed % 2 === 0) await breakOff(this.#shards, calls, (mortal) => sealNext(mortal, due));
    while (await sealNext(this.#shards, due));
  }

  async #recompute(calls: number): Promise<void> {
    const what = this.#recomputed[this.#passed % this.#rounds];
    const some = (warehouse: Warehouse) => recomputeDirtyHours(warehouse, { ...DIRTY_LIMITS, hours: 5 });
    for (const shard of this.#shards) {
      if (what === 'some') await some(shard);
      if (what === 'killed') await breakOff([shard], calls, ([mortal = shard]) => some(mortal));
      if (what === 'all') await recomputeAll(shard);
    }
  }
}

/** Runs a step of a process that is killed after a number of writing calls. */
async function breakOff(
  shards: readonly Warehouse[],
  calls: number,
  step: (mortal: readonly Warehouse[]) => Promise<unknown>,
): Promise<void> {
  let made = 0;
  const died = new Error('the process was killed');
  const countCall = async () => {
    made += 1;
    if (made > calls) throw died;
  };
  try {
    await step(shards.map((shard) => pausing(shard, countCall, ['run'])));
  } catch (error) {
    if (error !== died) throw error;
  }
}
