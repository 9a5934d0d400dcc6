/** Makes a fresh clone ready for what runs the tests, a bench or a build; with --browser for the tests of the page, too. */
import { makeReadyForTests } from './make-ready.mjs';

try {
  await makeReadyForTests(process.argv.includes('--browser'));
} catch (error) {
  console.error(`meterline: ${error.message}`);
  process.exitCode = 1;
}
