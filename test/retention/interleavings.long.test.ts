import { expect, it } from '@jest/globals';
import { playEveryOrder } from '../harness/interleaving.js';
import { testDatabase } from '../harness/test-database.js';
import { monthRace } from './month-race.js';

const database = testDatabase();

it('an old event counts, or is kept as rejected, in every order of a worker and of the drop of its month', async () => {
  const outcomes = new Set<string>();
  // A bound that is read too early fails with two switches.
  const explored = await playEveryOrder(3, (index) => monthRace(database.warehouse, index, outcomes));
  expect([...outcomes].sort()).toEqual(['counts, accepted', 'counts, rejected', 'does not count, rejected']);
  expect(explored.orders).toBeGreaterThanOrEqual(28);
}, 1_800_000);
