import { expect, it } from '@jest/globals';
import { Results } from './results.js';

const ID = '0190c5e4-7b1a-7def-8abc-0123456789ab';

it('the answer is the JSON of the results, in their order, with what is wrong with each', () => {
  const results = new Results();
  const expected = Array.from({ length: 1_111 }, (_, index) => {
    if (index % 3 > 0) {
      results.addAccepted(Buffer.from(`"${ID}"`), 1);
      return { index, eventId: ID, status: 'accepted' };
    }
    const refusal = { ...(index % 2 === 0 && { eventId: 'ünï "1"' }), reason: 'unknown_field' as const };
    const message = `unknown field "${'😀\ud800'.repeat(index % 200)}"`;
    results.addRefused({ ...refusal, message });
    return {
      index,
      ...(index % 2 === 0 && { eventId: 'ünï "1"' }),
      status: 'refused',
      reason: refusal.reason,
      message,
    };
  });
  const answer = { accepted: 740, refused: 371, results: expected };
  expect(results.answer().toString()).toBe(JSON.stringify(answer));
  expect(results.answer({ code: 400 }).toString()).toBe(JSON.stringify({ code: 400, ...answer }));
  expect([...results.refused]).toEqual([['unknown_field', 371]]);
});

it('without events there are no results', () => {
  expect(new Results().answer().toString()).toBe('{"accepted":0,"refused":0,"results":[]}');
});
