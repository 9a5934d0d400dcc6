/** What the collector loads as it runs in production, where its files are not joined and all that is imported is loaded. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, it } from '@jest/globals';
import { failureOf } from '../failure.js';
import { loadedBy } from '../loaded-packages.js';

const MAIN = fileURLToPath(new URL('../../services/collector/dist/main.js', import.meta.url));

it('the collector loads nothing of ClickHouse, and nothing that checks tokens unless it takes them', async () => {
  const { run, packages } = await loadedBy((env) =>
    failureOf(promisify(execFile)(process.execPath, [MAIN], { env: { ...env, REDIS_URL: 'nowhere' } })),
  );
  expect(run).toMatchObject({ stderr: expect.stringContaining('REDIS_URL') });
  expect([...packages]).toContain('bullmq');
  expect(['@clickhouse/client', 'undici', 'jose'].filter((name) => packages.has(name))).toEqual([]);
});
