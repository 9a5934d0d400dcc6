/** What `npm test` shortens runs whole in `npm run test:full`. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from '@jest/globals';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SETTING = /METERLINE_TEST_(SHORT|GROUPS|WALKS)|ORACLE_CASES|ordersOfTwo/;
/** Its long form is a program of its own. */
const FAULTS = 'test/faults/faults.test.ts';

it('is every test file that reads one of the settings of the short form', async () => {
  const { LONG_FILES, SHORTENED_FILES } = await import(join(ROOT, 'scripts', 'run-steps.mjs'));
  const tracked = execFileSync('git', ['ls-files', '-co', '--exclude-standard', '*.test.ts'], {
    cwd: ROOT,
    encoding: 'utf8',
  });
  const files = tracked.trim().split('\n');
  const shortened = files.filter((file) => SETTING.test(readFileSync(join(ROOT, file), 'utf8')));
  const own = new Set(['test/long-forms.test.ts', FAULTS]);
  expect(shortened.filter((file) => !own.has(file) && !LONG_FILES.includes(file))).toEqual(SHORTENED_FILES);
  expect(files).toEqual(expect.arrayContaining(LONG_FILES));
});
