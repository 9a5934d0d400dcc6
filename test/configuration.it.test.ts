import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';

it.each([
  ['docs/configuration.md says what the schemas of the environment say', 'write-configuration.mjs'],
  ['docs/observability/metrics.md says what the services register', 'write-metrics.mjs'],
])('%s', async (_, script) => {
  const path = fileURLToPath(new URL(`../scripts/${script}`, import.meta.url));
  const { stderr } = await promisify(execFile)(process.execPath, [path, '--check']);
  expect(stderr).toBe('');
});
