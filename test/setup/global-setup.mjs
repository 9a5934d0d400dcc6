/**
 * Starts what all test files of a run share, and passes it to the test workers in the environment:
 *
 * - METERLINE_TEST_CLICKHOUSE_URL, _USER and _PASSWORD, and METERLINE_TEST_REDIS_URL: one ClickHouse and one Redis
 * - METERLINE_TEST_BALANCER: with METERLINE_TEST_SHARDS=2 there are two ClickHouse servers, in one cluster, and this leads to
 *   both; METERLINE_TEST_CLICKHOUSE_URL is then the list of them
 * - METERLINE_TEST_TEMPLATE: a migrated, empty database on that ClickHouse, to copy from
 * - TMPDIR: a folder for all temporary files, in memory if there is room
 */
import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CLUSTER, startServers } from '@meterline/local-stack';
import { migrate } from '@meterline/warehouse';
import { startBalancer } from './balancer.mjs';

const TEMPLATE = 'test_template';

export default async function globalSetup() {
  const shards = Number(process.env.METERLINE_TEST_SHARDS ?? '1');
  const folder = await createTestFolder();
  process.env.TMPDIR = folder;
  const stack = await startServers({ shards, say: console.log });
  const { user, password } = stack.clickhouse;
  const url = stack.shards.map((shard) => shard.url).join(',');
  const cluster = shards > 1 ? { name: CLUSTER, insertQuorum: undefined } : undefined;
  const balancer = shards > 1 ? await startBalancer(stack.shards.map((shard) => shard.httpPort)) : undefined;
  const connection = { url, user, password, cluster, application: 'meterline-test' };
  await migrate({ ...connection, database: TEMPLATE });
  process.env.METERLINE_TEST_CLICKHOUSE_URL = url;
  if (balancer) process.env.METERLINE_TEST_BALANCER = balancer.url;
  process.env.METERLINE_TEST_CLICKHOUSE_USER = user;
  process.env.METERLINE_TEST_CLICKHOUSE_PASSWORD = password;
  process.env.METERLINE_TEST_REDIS_URL = stack.redis.url;
  process.env.METERLINE_TEST_TEMPLATE = TEMPLATE;

  const cleanUp = async () => {
    balancer?.stop();
    await stack.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 20 });
  };
  globalThis.cleanUpAfterTests = cleanUp;
  // Jest runs no teardown when it is interrupted. The servers would end by themselves, but their files would stay.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.once(signal, () => cleanUp().finally(() => process.exit(130)));
  }
}

const IN_MEMORY = '/dev/shm';
const NEEDED_BYTES = 4 * 2 ** 30;

/**
 * A folder for all temporary files of a test run. In memory where Linux has room for it, because a run mostly waits for the
 * servers to flush files to disk. What a killed process has written stays in memory as well.
 * @returns its path; the caller removes it
 */
async function createTestFolder() {
  return (await createInMemory()) ?? (await mkdtemp(join(tmpdir(), 'meterline-tests-')));
}

/** @returns undefined if there is no such file system, too little room, or it does not allow programs to run */
async function createInMemory() {
  try {
    const { bavail, bsize } = await statfs(IN_MEMORY);
    if (bavail * bsize < NEEDED_BYTES) return undefined;
    const folder = await mkdtemp(join(IN_MEMORY, 'meterline-tests-'));
    if (await runsPrograms(folder)) return folder;
    await rm(folder, { recursive: true });
    return undefined;
  } catch {
    return undefined;
  }
}

async function runsPrograms(folder) {
  const program = join(folder, 'program');
  await writeFile(program, '#!/bin/sh\nexit 0\n');
  await chmod(program, 0o700);
  const { status } = spawnSync(program);
  await rm(program);
  return status === 0;
}
