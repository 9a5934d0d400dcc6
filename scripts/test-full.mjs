/**
 * Tests more than `npm test` and takes longer, about a quarter of an hour on two cores: the files that `npm test` leaves out
 * (outages and crashes step by step, the guides, and more), every order of contradicting payloads, every order of
 * calls of sealers and writers, 400 cases of the oracle, paging through 25,000 groups, and more rounds of every fault.
 *
 * Usage: `npm run test:full`.
 */
import { JEST, LONG_FILES, runSteps } from './run-steps.mjs';

const TIME_ZONE = process.env.TZ || 'America/New_York';

const { failed, duration } = await runSteps([
  {
    name: 'the long tests',
    args: [
      ...JEST,
      'test/oracle/oracle.test.ts',
      'rollups/interleavings.test.ts',
      'test/contract/stored-pages.test.ts',
      'test/e2e/corrections.test.ts',
      ...LONG_FILES,
    ],
    env: { ORACLE_CASES: '400', METERLINE_TEST_CHANGES: '11', METERLINE_TEST_GROUPS: '25000', TZ: TIME_ZONE },
  },
  { name: 'faults, 13 rounds', args: ['--import', 'tsx', 'test/faults/main.ts', '--rounds', '13', '--lanes', '4'] },
]);
console.log(`${failed ? 'FAILED' : 'All passed'} after ${duration}`);
