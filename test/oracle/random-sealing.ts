/** Seals at random moments while histories play: before, between and after their events, whole steps and broken-off ones. */
import { sealNext, type Warehouse } from '@meterline/warehouse';
import fc from 'fast-check';
import { pausing } from '../interleaving.js';
import { distance, SCENES } from './scenes.js';

/** What a killed sealer leaves behind: nothing, a watermark that repairs heed, or cells that nobody trusts yet. */
const CALLS_OF_A_STEP = 3;

export class RandomSealing {
  readonly #warehouse: Warehouse;
  /** Up to where to seal next, ascending, as epoch milliseconds. */
  readonly #moments: number[];
  readonly #rounds: number;
  #passed = 0;

  /** @param rounds how many calls of {@link advance} it takes to seal everything that has a scene */
  constructor(warehouse: Warehouse, seed: number, rounds: number) {
    this.#warehouse = warehouse;
    this.#rounds = rounds;
    const perScene = Math.ceil(rounds / SCENES.length);
    const around = fc.sample(distance, { seed, numRuns: perScene * SCENES.length });
    this.#moments = around
      .map((milliseconds, index) => (SCENES[index % SCENES.length] ?? 0) + milliseconds)
      .sort((a, b) => a - b);
  }

  /** Moves the watermarks on past some moments. Every other time a sealer dies in the middle of its step before. */
  async advance(): Promise<void> {
    this.#passed += 1;
    const isPassed = Math.floor((this.#passed / this.#rounds) * this.#moments.length);
    const due = this.#moments[Math.min(isPassed, this.#moments.length - 1)] ?? 0;
    if (this.#passed % 2 === 0) await breakOff(this.#warehouse, due, this.#passed % CALLS_OF_A_STEP);
    while (await sealNext(this.#warehouse, due));
  }
}

/** One step, of which only so many writing calls happen. */
async function breakOff(warehouse: Warehouse, due: number, calls: number): Promise<void> {
  let made = 0;
  const died = new Error('the sealer was killed');
  const mortal = pausing(warehouse, async () => {
    made += 1;
    if (made > calls) throw died;
  }, ['run']);
  try {
    await sealNext(mortal, due);
  } catch (error) {
    if (error !== died) throw error;
  }
}
