/** Orders of interleavings.long.test.ts in which an old event is lost if a bound is read or set at the wrong time. */
import { it } from '@jest/globals';
import { playOrder } from '../harness/interleaving.js';
import { testDatabase } from '../harness/test-database.js';
import { monthRace } from './month-race.js';

const database = testDatabase();
let races = 0;

it.each([
  ['drops its month after the event is stored', [0, 1]],
  ['has made its month final before the event is stored', [1, 1, 0]],
])('an old event counts, or is kept as rejected, if an operator %s', async (_when, order) => {
  await playOrder(await monthRace(database.warehouse, races++), order);
});
