/** Orders of interleavings.long.test.ts in which the worst defects lose an event. */
import { it } from '@jest/globals';
import { playOrder } from '../../../../test/harness/interleaving.js';
import { rollupRace } from '../../../../test/harness/rollup-races.js';
import { testDatabase } from '../../../../test/harness/test-database.js';

const database = testDatabase();
let races = 0;

it.each([
  ['a sealer and a writer of an hour that is being sealed', [1, 1, 0, 0, 0]],
  ['a sealer and a writer of an hour that is being sealed', [0, 1, 1, 1, 0]],
  ['a sealer of a day and a recomputer of one of its hours', [0, 0, 1, 1, 1, 0]],
  ['a writer and a recomputer of a sealed hour, and a query', [1, 1, 0, 0, 0, 1]],
  ['a writer and a recomputer of a sealed hour, and a query', [0, 0, 0, 1]],
  ['a sealer of an hour that is too large, and a query', [1, 0, 0, 0, 0]],
] as const)('%s agree in the order %j', async (name, order) => {
  await playOrder(await rollupRace(database.warehouse, name, races++), order);
});
