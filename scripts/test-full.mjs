/**
 * Tests more than `npm test` and takes longer, about a quarter of an hour on two cores: several rounds of every fault with
 * larger streams, every order of calls of sealers and writers, five times as many cases of the oracle, and paging
 * through 25,000 groups.
 *
 * Usage: `npm run test:full`.
 */
import { JEST, runSteps } from './run-steps.mjs';

const { failed, duration } = await runSteps([
  {
    name: 'the oracle, 1,000 cases, every order of calls, and 25,000 groups',
    args: [
      ...JEST,
      'test/oracle/oracle.test.ts',
      'rollups/interleavings.test.ts',
      'test/contract/stored-pages.test.ts',
    ],
    env: { ORACLE_CASES: '1000', METERLINE_TEST_CHANGES: '11', METERLINE_TEST_GROUPS: '25000' },
  },
  { name: 'faults, 20 rounds', args: ['--import', 'tsx', 'test/faults/main.ts', '--rounds', '20', '--lanes', '4'] },
]);
console.log(`${failed ? 'FAILED' : 'All passed'} after ${duration}`);
