/** Programs of the tests that are processes of their own, compiled. */
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The file to run with Node. @param program below `test`, such as fuzz/main */
export function testProgram(program: string): string {
  return join(ROOT, 'dist', `${program}.js`);
}

/** What `npm start` runs when everything is made. */
export const START = join(ROOT, 'packages/local-stack/dist/start/main.js');
