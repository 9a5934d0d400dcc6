/**
 * Opens what all test files of a run share, and passes it to the test workers in the environment:
 *
 * - METERLINE_TEST_CLICKHOUSE_URL, _USER and _PASSWORD, and METERLINE_TEST_REDIS_URL: one ClickHouse and one Redis
 * - METERLINE_TEST_BALANCER: with METERLINE_TEST_SHARDS=2 there are two ClickHouse servers in one cluster, and this URL leads to
 *   both; METERLINE_TEST_CLICKHOUSE_URL then lists both
 * - METERLINE_TEST_PROFILE=hostile: the ClickHouse users have the settings of hostile-profile.mjs
 * - METERLINE_TEST_TEMPLATE: the database that each test file copies
 * - TMPDIR: a folder for all temporary files, in memory if there is room
 */
import { spawnSync } from 'node:child_process';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { createTestFolder } from './test-folder.mjs';

const ROOT = join(import.meta.dirname, '../..');

export default async function globalSetup() {
  // Services and programs are started from their build.
  const { status } = spawnSync(process.execPath, ['scripts/make-ready.mjs', '--tests'], {
    cwd: ROOT,
    stdio: 'inherit',
  });
  if (status !== 0) throw new Error('the build failed; the messages above say why');
  const { openTestServers } = await import('./test-servers.mjs');
  const folder = await createTestFolder();
  process.env.TMPDIR = folder;
  const { env, stop } = await openTestServers(Number(process.env.METERLINE_TEST_SHARDS ?? '1'));
  Object.assign(process.env, env);

  const cleanUp = async () => {
    await stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  };
  globalThis.cleanUpAfterTests = cleanUp;
  // Jest runs no teardown when it is interrupted. The servers would end by themselves, but their files would stay.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => cleanUp().finally(() => process.exit(130)));
  }
}
