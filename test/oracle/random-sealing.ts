/** Seals while histories play: before, between and after their events, in complete and in interrupted steps. */
import { sealNext, type Warehouse } from '@meterline/warehouse';
import fc from 'fast-check';
import { pausing } from '../harness/interleaving.js';
import { ANCHORS, distance } from './anchors.js';

/** What a killed sealer leaves behind: nothing, a watermark that marks respect, or rollup rows that no reader uses yet. */
const CALLS_OF_A_STEP = 3;

export class RandomSealing {
  readonly #shards: readonly Warehouse[];
  /** The next watermarks, ascending, as epoch milliseconds. */
  readonly #moments: number[];
  readonly #rounds: number;
  #passed = 0;

  /** @param rounds after how many calls of {@link advance} all anchors are sealed */
  constructor(shards: readonly Warehouse[], seed: number, rounds: number) {
    this.#shards = shards;
    this.#rounds = rounds;
    const perAnchor = Math.ceil(rounds / ANCHORS.length);
    const around = fc.sample(distance, { seed, numRuns: perAnchor * ANCHORS.length });
    this.#moments = around
      .map((milliseconds, index) => (ANCHORS[index % ANCHORS.length] ?? 0) + milliseconds)
      .sort((a, b) => a - b);
  }

  /** Moves the watermarks past the next moments. Every second time, a sealer first dies in the middle of a step. */
  async advance(): Promise<void> {
    this.#passed += 1;
    const isPassed = Math.floor((this.#passed / this.#rounds) * this.#moments.length);
    const due = this.#moments[Math.min(isPassed, this.#moments.length - 1)] ?? 0;
    if (this.#passed % 2 === 0) {
      await breakOff(this.#shards, this.#passed % CALLS_OF_A_STEP, (mortal) => sealNext(mortal, due));
    }
    while (await sealNext(this.#shards, due));
  }
}

/** Runs a step of a process that is killed after a number of writing calls. */
export async function breakOff(
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
  const mortal = shards.map((shard) => pausing(shard, countCall, ['run']));
  try {
    await step(mortal);
  } catch (error) {
    if (error !== died) throw error;
  }
}
