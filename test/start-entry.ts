import { join } from 'node:path';

/** What `npm start` runs, as `test/setup/global-setup.mjs` has made it for this run. */
export function startEntry(): string {
  const { METERLINE_TEST_SERVICES: joined } = process.env;
  if (joined === undefined) throw new Error('METERLINE_TEST_SERVICES is not set: run this file with npm run jest');
  return join(joined, 'start.mjs');
}
