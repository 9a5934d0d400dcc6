import { describe, expect, it } from '@jest/globals';
import { EventRows, Names, type RejectedEvent } from '@meterline/warehouse';
import { pricedEvent } from '../../../test/priced-event.js';
import type { Intake } from './intake.js';
import { Lanes } from './lanes.js';
import { ShardLanes } from './shard-lanes.js';

const NOW = Date.UTC(2026, 5, 15, 12, 30);

/** Accounts are named by their shard. */
const indexOf = (account: string) => Number(account.slice(0, 1));

function intake(accounts: readonly string[], refusedAccounts: readonly string[] = []): Intake {
  const refused = { receivedAt: NOW, jobId: '', position: 0, reason: 'no_price', message: '', payload: '' } as const;
  return {
    job: { id: 'job', receivedAt: NOW },
    accepted: EventRows.of(
      accounts.map((accountId) => pricedEvent({ accountId, timestamp: NOW })),
      new Names(),
    ),
    rejected: refusedAccounts.map((accountId): RejectedEvent => ({ ...refused, accountId })),
  };
}

/** Shards that store at once, but for those that are away; and what each has stored. */
function shardLanes(count: number, away: readonly number[] = []) {
  const stored: Record<number, string[]> = {};
  const lanesOf = (shard: number) =>
    new Lanes({
      maxRows: 10,
      flushMs: 1,
      maxIntakes: () => 1,
      sealDelayMs: 0,
      store: async (batch) => {
        if (away.includes(shard)) throw new Error('away');
        const accounts = batch.flatMap(({ accepted, rejected }) => [
          ...Array.from({ length: accepted.length }, (_, row) => accepted.accountIdOf(row)),
          ...rejected.map(({ accountId }) => `refused ${accountId}`),
        ]);
        stored[shard] = [...(stored[shard] ?? []), ...accounts];
      },
    });
  const lanes = new ShardLanes({
    lanes: Array.from({ length: count }, (_, shard) => lanesOf(shard)),
    indexOf,
    isAway: (shard) => away.includes(shard),
  });
  return { lanes, stored };
}

describe('the rows of a job', () => {
  it('are each stored once, in the shard of their account, refused ones too', async () => {
    const { lanes, stored } = shardLanes(3);
    await lanes.add(lanes.split(intake(['0a', '2b', '0c', '2b'], ['2b', '1d']), NOW));
    expect(stored).toEqual({ 0: ['0a', '0c'], 1: ['refused 1d'], 2: ['2b', '2b', 'refused 2b'] });
  });

  it('are not copied when they all go to one shard', () => {
    const job = intake(['1a', '1b']);
    const [part, ...others] = shardLanes(2).lanes.split(job, NOW);
    expect(others).toEqual([]);
    expect(part?.current[0]?.intake.accepted).toBe(job.accepted);
  });

  it('are not stored when one shard has failed', async () => {
    const { lanes, stored } = shardLanes(2, [1]);
    await expect(lanes.add(lanes.split(intake(['0a', '1b']), NOW))).rejects.toThrow('away');
    expect(stored).toEqual({ 0: ['0a'] });
  });
});

describe('a job waits', () => {
  const mustWait = (count: number, away: readonly number[], accounts: readonly string[]) => {
    const { lanes } = shardLanes(count, away);
    return lanes.mustWait(lanes.split(intake(accounts), NOW));
  };

  it('for its shard, so that jobs of others are taken', () => {
    expect(mustWait(2, [1], ['1a'])).toBe(true);
    expect(mustWait(2, [1], ['0a', '1b'])).toBe(true);
    expect(mustWait(2, [1], ['0a'])).toBe(false);
  });

  it('for nothing when all shards are away, or the only one: there are no others', () => {
    expect(mustWait(2, [0, 1], ['1a'])).toBe(false);
    expect(mustWait(1, [0], ['0a'])).toBe(false);
  });
});
