import { describe, expect, it } from '@jest/globals';
import { hashTagged, jobIdIn, queuePrefixOf, ShardTurns } from './queue-shards.js';

describe('the prefix of a queue', () => {
  it.each([
    ['bull', 0, false, 'bull'],
    ['bull', 2, false, '{bull-2}'],
    ['bull', 0, true, '{bull}'],
    ['bull', 2, true, '{bull-2}'],
    ['{bull}', 0, true, '{bull}'],
    ['a{bull}b', 1, false, 'a{bull-1}b'],
    ['a{}b', 1, true, '{a{-1}b}'],
  ])('%s of queue %d, in a Cluster: %s', (prefix, shard, isCluster, expected) => {
    expect(queuePrefixOf(prefix, shard, isCluster)).toBe(expected);
  });
});

it('a prefix has one hash tag, and an empty one is none', () => {
  expect(['meterline:collector', '{a}:b', '{}'].map(hashTagged)).toEqual(['{meterline:collector}', '{a}:b', '{{}}']);
});

it('the id of a job says in which queue it is, but for the first', () => {
  expect([jobIdIn(0, '7'), jobIdIn(3, '7')]).toEqual(['7', '3:7']);
});

describe('queues', () => {
  it('have their turns, and one that fails is left out for a while', () => {
    const turns = new ShardTurns(3);
    const take = (count: number, now: number) => Array.from({ length: count }, () => turns.next(now));
    expect(take(4, 0)).toEqual([0, 1, 2, 0]);
    turns.failed(1, 0);
    expect(take(3, 1_999)).toEqual([2, 0, 2]);
    expect(take(3, 2_000)).toEqual([0, 1, 2]);
  });

  it('have their turns even if all of them fail', () => {
    const turns = new ShardTurns(2);
    for (const shard of [0, 1]) turns.failed(shard, 0);
    expect([turns.next(1), turns.next(1)]).toEqual([0, 1]);
    turns.took(0);
    expect([turns.next(1), turns.next(1)]).toEqual([0, 0]);
  });

  describe('to which something is written', () => {
    /** @param takesMs how long each of them takes to fail @returns those that were tried */
    async function tried(shards: number, takesMs: number, works = -1) {
      let now = 0;
      const asked: number[] = [];
      const write = async (shard: number) => {
        asked.push(shard);
        now += takesMs;
        if (shard !== works) throw new Error(`${shard} is away`);
      };
      const outcome = await new ShardTurns(shards)
        .write(write, 10_000, () => now)
        .catch((error: Error) => error.message);
      return { asked, outcome };
    }

    it('are tried one after the other until one takes it', async () => {
      expect(await tried(4, 1, 2)).toEqual({ asked: [0, 1, 2], outcome: undefined });
    });

    it('are each tried once, and the last error is told', async () => {
      expect(await tried(3, 1)).toEqual({ asked: [0, 1, 2], outcome: '2 is away' });
    });

    it('are not tried any more when the time is up, however many there are', async () => {
      expect(await tried(64, 5_000)).toEqual({ asked: [0, 1], outcome: '1 is away' });
    });
  });
});
