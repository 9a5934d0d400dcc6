import { describe, expect, it } from '@jest/globals';
import { oncePerTurn } from './once-per-turn.js';

const turn = () => new Promise((resolve) => setImmediate(resolve));

describe('work once in a turn of the event loop', () => {
  it('is done once for all who ask for the same, and tells each its place', async () => {
    const calls: [string, number][] = [];
    const ask = oncePerTurn(
      (subject: string) => subject,
      async (subject, asking) => {
        calls.push([subject, asking]);
        return calls.length;
      },
    );
    const asked = ['a', 'b', 'a', 'a'].map((subject) => ask(subject));
    expect(asked.map(({ place }) => place)).toEqual([0, 0, 1, 2]);
    expect(await Promise.all(asked.map(({ outcome }) => outcome))).toEqual([1, 2, 1, 1]);
    expect(calls).toEqual([
      ['a', 3],
      ['b', 1],
    ]);
  });

  it('begins after the last question, so that nobody gets an answer from before', async () => {
    let state = 'before';
    const ask = oncePerTurn(
      () => '',
      async () => state,
    );
    const first = ask(undefined);
    state = 'after';
    expect(await Promise.all([first.outcome, ask(undefined).outcome])).toEqual(['after', 'after']);
  });

  it('is not shared with who asks while it is under way', async () => {
    const begun: (() => void)[] = [];
    const ask = oncePerTurn(
      () => '',
      () => new Promise<number>((resolve) => begun.push(() => resolve(begun.length))),
    );
    const first = ask(undefined);
    await turn();
    await turn();
    const second = ask(undefined);
    expect(second.place).toBe(0);
    await turn();
    await turn();
    expect(begun).toHaveLength(2);
    for (const end of begun) end();
    await Promise.all([first.outcome, second.outcome]);
  });

  it('that fails, fails for all who asked, and for no other', async () => {
    let attempts = 0;
    const ask = oncePerTurn(
      () => '',
      async () => {
        attempts += 1;
        if (attempts === 1) throw new Error('away');
        return attempts;
      },
    );
    const outcomes = await Promise.allSettled([ask(undefined).outcome, ask(undefined).outcome]);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect(await ask(undefined).outcome).toBe(2);
  });
});
