/** Sealers, writers, recomputers and queries of a day in every order of their statements. */
import { expect, it } from '@jest/globals';
import { playEveryOrder } from '../../../../test/harness/interleaving.js';
import { type RACES, rollupRace } from '../../../../test/harness/rollup-races.js';
import { testDatabase } from '../../../../test/harness/test-database.js';

/**
 * Maximum number of switches between actors: with 20, two actors would play every order there is. A recomputer that reads the watermark of
 * the days too early fails with two: it reads, the sealer seals the day, it writes.
 */
const SWITCHES_OF_TWO = 4;
const SWITCHES_OF_THREE = 3;

/**
 * How many orders each race has at least, and how many paths each actor takes. A writer marks the hour, or finds that nothing is being sealed.
 * A recomputer finds no mark, or marks, and the day is being sealed or not.
 */
const EXPECTED = [
  ['a sealer and a writer of an hour that is being sealed', SWITCHES_OF_TWO, 48, [2, 1]],
  ['a sealer of a day and a recomputer of one of its hours', SWITCHES_OF_TWO, 35, [2, 1]],
  ['a sealer, a writer and a recomputer of an hour that is being sealed', SWITCHES_OF_THREE, 43, [2, 3, 1]],
  ['two writers of a sealed hour, of which one sends a void', SWITCHES_OF_TWO, 18, [1, 1]],
  ['a writer and a recomputer of a sealed hour, and a query', SWITCHES_OF_THREE, 48, [1, 1, 1]],
  ['two recomputers of a sealed hour and a writer', SWITCHES_OF_THREE, 58, [1, 2, 2]],
] as const satisfies readonly (readonly [keyof typeof RACES, number, number, readonly number[]])[];

const database = testDatabase();
let races = 0;

it.each(EXPECTED)('%s agree in every order of their statements', async (name, switches, orders, paths) => {
  const explored = await playEveryOrder(switches, () => rollupRace(database.warehouse, name, races++));
  expect(explored.paths).toEqual(paths);
  expect(explored.orders).toBeGreaterThanOrEqual(orders);
});
