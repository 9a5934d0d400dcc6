/** `npm start`: makes a fresh clone ready to run, and runs it in this process, because another would take longer to come up. */
import { pathToFileURL } from 'node:url';
import { makeReadyToStart } from './make-ready.mjs';

const entry = await makeReadyToStart().catch((error) => {
  console.error(`meterline: ${error.message}`);
  process.exitCode = 1;
});
if (entry) await import(pathToFileURL(entry).href);
