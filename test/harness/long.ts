import { expect, it } from '@jest/globals';

if (!expect.getState().testPath?.endsWith('.long.test.ts'))
  throw new Error('npm run test:full runs only files that are named *.long.test.ts: this one has a long form');

/** Whether this is `npm run test:full`; a test that takes long in it has a smaller number in `npm test`. */
export const LONG = process.env.LONG === '1';

/** A test that only `npm run test:full` runs. */
export const itLong: typeof it.skip = LONG ? it : it.skip;
