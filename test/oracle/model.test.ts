/** What agreement with the service does not prove of the oracle: how it treats what is not decided yet. */
import { expect, it } from '@jest/globals';
import { usageEvent } from '../harness/events.js';
import { Oracle } from './model.js';

it('the oracle keeps both payloads of a revision until the winner is known, then only the winner', () => {
  const oracle = new Oracle();
  for (const usage of [5, 7]) expect(oracle.accept(usageEvent(1, { usage }))).toBe('accepted');
  expect(() => oracle.totals('acme')).toThrow('contested');
  expect(oracle.stored()).toMatchObject([{ accountId: 'acme', payloads: [{}, {}] }]);
  const worlds = oracle.worlds('acme');
  for (const world of worlds) for (const usage of [5, 7]) world.accept(usageEvent(1, { usage }));
  expect(worlds.map((world) => world.totals('acme').usage)).toEqual(['5', '7']);
});
