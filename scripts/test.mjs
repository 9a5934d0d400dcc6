/**
 * What must pass, in order, up to the first failure: lint, types, tests, and some of them on two shards. It takes the short form of the tests that have
 * two, and leaves LONG_FILES to `npm run test:full`; tests that are named run whole. Tests run in a time zone that is
 * not UTC and has daylight saving time, so that code that uses local time by mistake fails; `TZ=… npm test` uses another.
 *
 * Usage: `npm test [-- jest options]`.
 */
import { join } from 'node:path';
import { JEST, LONG_FILES, onShards, ROOT, runSteps, SHORT_ON_SHARDS } from './run-steps.mjs';

const MODULES = join(ROOT, 'node_modules');
const TIME_ZONE = process.env.TZ || 'America/New_York';

const named = process.argv.slice(2);
const short = {
  args: [...JEST, '--testPathIgnorePatterns', '/node_modules/', '/dist/', ...LONG_FILES],
  env: {
    ORACLE_CASES: '10',
    METERLINE_TEST_GROUPS: '1000',
    METERLINE_TEST_WALKS: '3',
    METERLINE_TEST_SHORT: '1',
    METERLINE_TEST_CHANGES: '2',
  },
};
const tests = named.length > 0 ? { args: [...JEST, ...named], env: {} } : short;

const steps = [
  { name: 'lint', args: [join(MODULES, '@biomejs', 'biome', 'bin', 'biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'types', args: [join(MODULES, 'typescript', 'bin', 'tsc'), '-b'] },
  { name: `tests in ${TIME_ZONE}`, args: tests.args, env: { ...tests.env, TZ: TIME_ZONE } },
  ...(named.length > 0 ? [] : [onShards({ ...SHORT_ON_SHARDS, timeZone: TIME_ZONE })]),
];

const { failed, duration } = await runSteps(steps);
console.log(failed ? `FAILED at ${failed} after ${duration}` : `All ${steps.length} steps passed in ${duration}`);
