/** Two faults at once, of things that do not need each other: one must not be in the way of recovering from the other. */
import { clickhouseCuts, clickhouseKilled, clickhouseSwallows } from './clickhouse-faults.js';
import type { Fault } from './fault.js';
import { redisFull, redisKilled, redisUnreachable } from './redis-faults.js';
import { queryKilled } from './walk-fault.js';
import { workerFrozen, workerOfTwoKilled } from './worker-faults.js';

const PAIRS: readonly (readonly [Fault, Fault])[] = [
  [workerOfTwoKilled, clickhouseKilled],
  [workerOfTwoKilled, redisKilled],
  [workerOfTwoKilled, redisFull],
  [workerOfTwoKilled, clickhouseSwallows],
  [workerFrozen, clickhouseCuts],
  [workerFrozen, clickhouseKilled],
  [clickhouseKilled, redisKilled],
  [clickhouseKilled, queryKilled],
  [clickhouseKilled, redisUnreachable],
  [redisFull, clickhouseKilled],
  [queryKilled, workerOfTwoKilled],
];

export const twoAtOnce: Fault = {
  name: 'two-at-once',
  injects: `two of the faults above at once, of different processes: ${PAIRS.length} pairs`,
  workers: 2,
  proxied: 'both',
  weight: 22,
  redis: 'server',
  strike: async (scene) => {
    const pair = scene.random.pick(PAIRS);
    const struck = await Promise.allSettled(pair.map(({ strike }) => strike(scene)));
    const names = pair.map(({ name }) => name).join(' and ');
    for (const each of struck) {
      if (each.status === 'rejected') throw new Error(`with ${names} at once`, { cause: each.reason });
    }
  },
};
