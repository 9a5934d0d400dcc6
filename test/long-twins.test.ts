/** What reads `LONG` has a long form, which only a `*.long.test.ts` beside it runs: see README.md. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from '@jest/globals';

it('every integration test with a long form has a file that runs it', () => {
  const files = ['test', 'packages', 'services'].flatMap((folder) =>
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
  );
  const withLongForm = files.filter(
    (file) =>
      /^(?!.*node_modules).*\.it\.test\.ts$/.test(file) && readFileSync(file, 'utf8').includes('harness/long.js'),
  );
  expect(withLongForm.length).toBeGreaterThan(4);
  expect(withLongForm.filter((file) => !existsSync(file.replace('.it.test.ts', '.long.test.ts')))).toEqual([]);
});
