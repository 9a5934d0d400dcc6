import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

it('the pages of the configuration and of the metrics say what the code says', async () => {
  const path = fileURLToPath(new URL('../scripts/write-reference.mjs', import.meta.url));
  const { stderr } = await promisify(execFile)(process.execPath, [path, '--check']);
  expect(stderr).toBe('');
});
