/**
 * Everything that must pass, in order, up to the first failure: lint, types, every test. Tests run in a time zone that is
 * not UTC and has daylight saving time, so that code that uses local time by mistake fails; `TZ=… npm test` uses another.
 *
 * Usage: `npm test [-- jest options]`.
 */
import { join } from 'node:path';
import { JEST, ROOT, runSteps } from './run-steps.mjs';

const MODULES = join(ROOT, 'node_modules');
const TIME_ZONE = process.env.TZ || 'America/New_York';

const steps = [
  { name: 'lint', args: [join(MODULES, '@biomejs', 'biome', 'bin', 'biome'), 'ci', '--error-on-warnings', '.'] },
  { name: 'types', args: [join(MODULES, 'typescript', 'bin', 'tsc'), '-b'] },
  { name: `tests in ${TIME_ZONE}`, args: [...JEST, ...process.argv.slice(2)], env: { TZ: TIME_ZONE } },
];

const { failed, duration } = await runSteps(steps);
console.log(failed ? `FAILED at ${failed} after ${duration}` : `All ${steps.length} steps passed in ${duration}`);
