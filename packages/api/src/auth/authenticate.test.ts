/** How often the use of a key is written down. What a list shows of it: test/contract/api-keys; a full Redis: test/e2e/full-redis. */
import { expect, it } from '@jest/globals';
import { LastUses } from './authenticate.js';

const at = (time: string) => new Date(`2025-11-15T${time}Z`);

/** A store that writes, or refuses to, and what it was asked for. */
function store() {
  const written: string[] = [];
  const state = { isFull: false };
  const noteUse = async (keyId: string, hour: Date) => {
    written.push(`${keyId} ${hour.toISOString().slice(11, 16)}`);
    if (state.isFull) throw new Error('OOM');
  };
  return { written, state, uses: new LastUses({ noteUse }) };
}

it('each key is written down once in an hour, by the beginning of it', () => {
  const { written, uses } = store();
  for (const time of ['12:00:00', '12:30:00', '12:59:59.999']) uses.note('a', at(time));
  uses.note('b', at('12:40:00'));
  for (const time of ['13:00:00', '13:00:01', '16:20:00']) uses.note('a', at(time));
  expect(written).toEqual(['a 12:00', 'b 12:00', 'a 13:00', 'a 16:00']);
});

it('what was refused is tried again after a minute, and harms nobody', async () => {
  const { written, state, uses } = store();
  state.isFull = true;
  for (const time of ['12:00:00', '12:00:59.999', '12:01:00']) {
    uses.note('a', at(time));
    // The refusal arrives.
    await Promise.resolve();
    await Promise.resolve();
  }
  expect(written).toEqual(['a 12:00', 'a 12:00']);
  state.isFull = false;
  for (const time of ['12:02:00', '12:03:00']) uses.note('a', at(time));
  expect(written).toEqual(['a 12:00', 'a 12:00', 'a 12:00']);
});
