import { describe, expect, it } from '@jest/globals';
import { ClientGone } from '@meterline/api';
import { answerOf, plainBody } from './answer-body.js';
import { KeptAnswers, type Outcome } from './kept-answers.js';

const STAMPS = { sealed: 's1', any: 'a1' };
const OTHERS = { ...STAMPS, any: 'a2' };
const work =
  (json: string, basis: 'sealed' | 'any' = 'any') =>
  async () => ({ answer: answerOf(json), basis });

describe('kept answers', () => {
  it('are found as long as the stamp that they depend on is the same', async () => {
    const answers = new KeptAnswers(1_000_000);
    const past = await answers.compute('past', STAMPS, work('1', 'sealed'));
    const now = await answers.compute('now', STAMPS, work('2'));
    expect([answers.find('past', STAMPS)?.body, answers.find('now', STAMPS)?.body]).toEqual([past.body, now.body]);
    const current = { ...STAMPS, any: 'a2' };
    expect([answers.find('past', current)?.body, answers.find('now', current)]).toEqual([past.body, undefined]);
    expect(answers.find('past', { sealed: 's2', any: 'a3' })).toBeUndefined();
    expect(answers.find('past', undefined)).toBeUndefined();
    expect(answers.find('other', STAMPS)).toBeUndefined();
  });

  it('take no more memory than they may, and give up those that were not asked for longest', async () => {
    const most = 100_000;
    const answers = new KeptAnswers(most);
    const body = JSON.stringify('x'.repeat(9_000));
    for (let n = 0; n < 50; n += 1) {
      await answers.compute(`question ${n}`, STAMPS, work(body));
      answers.find('question 0', STAMPS);
      expect(answers.bytes).toBeLessThanOrEqual(most);
    }
    expect(answers.bytes).toBeGreaterThan(most / 2);
    expect([0, 1, 40, 49].map((n) => answers.has(`question ${n}`))).toEqual([true, false, false, true]);
    // One that is larger than everything is not kept, and sends nothing away.
    await answers.compute('large', STAMPS, work(JSON.stringify('x'.repeat(most))));
    expect([answers.has('large'), answers.has('question 49')]).toEqual([false, true]);
  });

  it('keep no memory but their own, however short they are', () => {
    expect(answerOf('{}').body.buffer.byteLength).toBe(2);
    expect(answerOf('"ü"').body.toString()).toBe('"ü"');
  });

  it('are kept compressed once a client has wanted that, as long as before, and compressed once for all', async () => {
    const answers = new KeptAnswers(1_000_000);
    const json = JSON.stringify(Array.from({ length: 1_000 }, (_, n) => ({ n })));
    const answer = await answers.compute('question', STAMPS, work(json, 'sealed'));
    const before = answers.bytes;
    const [first, second] = await Promise.all([
      answers.compressed('question', answer),
      answers.compressed('question', answer),
    ]);
    expect(second).toBe(first);
    expect(first).toMatchObject({ isCompressed: true, length: json.length, etag: answer.etag });
    expect(first.body.buffer.byteLength).toBe(first.body.length);
    expect(answers.bytes).toBe(before - json.length + first.body.length);
    expect(answers.find('question', OTHERS)).toBe(first);
    expect(await answers.compressed('question', first)).toBe(first);
    expect((await plainBody(first)).toString()).toBe(json);
    // One that has been computed again meanwhile stays.
    await answers.compute('question', { ...STAMPS, sealed: 's2' }, work('2', 'sealed'));
    await answers.compressed('question', { ...answer });
    expect(answers.find('question', STAMPS)).toBeUndefined();
  });

  it('are left as they are where compressing is not worth it', async () => {
    const answers = new KeptAnswers(1_000_000);
    const answer = await answers.compute('question', STAMPS, work('1'));
    expect(await answers.compressed('question', answer)).toBe(answer);
    expect((await plainBody(answer)).toString()).toBe('1');
  });

  it('are none with no memory', async () => {
    const answers = new KeptAnswers(0);
    await answers.compute('question', STAMPS, work('1'));
    expect([answers.isOn, answers.has('question'), answers.find('question', STAMPS), answers.bytes]).toEqual([
      false,
      false,
      undefined,
      0,
    ]);
  });

  it('that are under way are computed once for all who ask with the same stamp', async () => {
    const outcomes: Outcome[] = [];
    const answers = new KeptAnswers(1_000_000, (outcome) => outcomes.push(outcome));
    let finish: () => void = () => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    const computed = answers.compute('question', STAMPS, async () => {
      await finished;
      return { answer: answerOf('1'), basis: 'any' };
    });
    expect([answers.isUnderWay('question', STAMPS), answers.isUnderWay('question', OTHERS)]).toEqual([true, false]);
    const others = [
      answers.join('question', STAMPS),
      answers.join('question', STAMPS),
      answers.join('question', OTHERS),
    ];
    finish();
    const answer = await computed;
    expect(await Promise.all(others)).toEqual([answer, answer, undefined]);
    expect(outcomes).toEqual(['miss', 'shared', 'shared']);
    expect(answers.isUnderWay('question', STAMPS)).toBe(false);
  });

  it('that fail are not kept, and fail for those who waited, unless a client has gone', async () => {
    const answers = new KeptAnswers(1_000_000);
    const failing = answers.compute('question', STAMPS, () => Promise.reject(new Error('away')));
    const other = answers.join('question', STAMPS);
    await expect(failing).rejects.toThrow('away');
    await expect(other).rejects.toThrow('away');
    const left = answers.compute('question', STAMPS, () => Promise.reject(new ClientGone()));
    const waiting = answers.join('question', STAMPS);
    await expect(left).rejects.toThrow(ClientGone);
    expect(await waiting).toBeUndefined();
    expect([answers.has('question'), answers.isUnderWay('question', STAMPS)]).toEqual([false, false]);
  });
});
