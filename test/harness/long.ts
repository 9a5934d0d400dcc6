import { it } from '@jest/globals';

/** Whether this is `npm run test:full`; a test that takes long in it has a smaller number in `npm test`. */
export const LONG = process.env.LONG === '1';

/** A test that only `npm run test:full` runs. */
export const itLong: typeof it.skip = LONG ? it : it.skip;
