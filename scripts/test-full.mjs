/**
 * Tests more than `npm test` and takes longer, about 20 minutes on two cores: the files that `npm test` leaves out
 * (outages and crashes step by step, the guides, and more), every order of contradicting payloads, the orders of
 * sealers, writers, repairers, questions and kept answers, and of workers and a drop of old months, 100 cases of the oracle, paging through 12,000 groups, the work of each user of ClickHouse, the
 * long form of the tests on two shards, a round of every fault, of servers and of producers, faults on a Redis Cluster, 6,000 fuzzed requests and events (`npm run test:attack` sends
 * 40,000), and every other attack.
 *
 * Usage: `npm run test:full`.
 */
import { JEST, LONG_FILES, LONG_ON_SHARDS, onShards, runSteps, SHORTENED_FILES } from './run-steps.mjs';

/** What several Redis servers may change; `npm run test:faults -- --redis cluster` has all that can happen there. */
const ON_CLUSTER = ['--only', 'worker-frozen,master-killed,master-frozen,worker-and-master,master-replaced'];
const TIME_ZONE = process.env.TZ || 'America/New_York';

const { failed, duration } = await runSteps([
  {
    name: 'the long tests',
    args: [...JEST, ...SHORTENED_FILES, ...LONG_FILES],
    env: {
      ORACLE_CASES: '100',
      METERLINE_TEST_GROUPS: '12000',
      METERLINE_TEST_WALKS: '40',
      METERLINE_TEST_CHANGES: '4',
      TZ: TIME_ZONE,
    },
  },
  onShards({ ...LONG_ON_SHARDS, timeZone: TIME_ZONE }),
  // They wait more than they work.
  [
    { name: 'faults, each once', args: ['--import', 'tsx', 'test/faults/main.ts', '--rounds', '1', '--lanes', '4'] },
    {
      name: 'faults on a Redis Cluster, with two queues',
      args: [
        '--import',
        'tsx',
        'test/faults/main.ts',
        '--redis',
        'cluster',
        '--brief',
        '--rounds',
        '1',
        '--lanes',
        '1',
        ...ON_CLUSTER,
      ],
    },
    {
      name: 'producers, each fault by each door, with and without a spool',
      args: ['--import', 'tsx', 'test/emitter/main.ts', '--rounds', '26'],
    },
  ],
  { name: 'attacks', args: ['--import', 'tsx', 'test/attack/main.ts', '--requests', '6000', '--events', '6000'] },
]);
console.log(`${failed ? 'FAILED' : 'All passed'} after ${duration}`);
