import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type ClickHouseOptions, startClickHouse } from './clickhouse.js';
import { type RedisOptions, startRedis } from './redis.js';
import type { RunningClickHouse, RunningRedis } from './running-server.js';

export interface LocalStackOptions {
  /** Where the data stays. Default: a new temporary directory that `stop` removes. */
  dataDir?: string | undefined;
  clickhouse?: Omit<ClickHouseOptions, 'dataDir'> | undefined;
  redis?: Omit<RedisOptions, 'dataDir' | 'say'> | undefined;
  /** Told, one line each, what takes long, such as installing Redis. */
  say?: ((line: string) => void) | undefined;
}

export interface LocalStack {
  readonly dataDir: string;
  readonly clickhouse: RunningClickHouse;
  readonly redis: RunningRedis;
  /** Stops both servers, cleanly if they heed it. Safe to call again. */
  stop(): Promise<void>;
}

/**
 * Starts a ClickHouse and a Redis side by side, or neither.
 *
 * @throws LocalStackError
 * @throws RedisUnavailableError
 */
export async function startLocalStack(options: LocalStackOptions = {}): Promise<LocalStack> {
  const temporary = options.dataDir === undefined;
  const dataDir =
    options.dataDir === undefined ? await mkdtemp(join(tmpdir(), 'meterline-')) : resolve(options.dataDir);
  const removeIfTemporary = async () => {
    if (temporary) await rm(dataDir, { recursive: true, force: true, maxRetries: 5 });
  };

  const [clickhouse, redis] = await Promise.allSettled([
    startClickHouse({ ...options.clickhouse, dataDir }),
    startRedis({ ...options.redis, dataDir, say: options.say }),
  ]);
  if (clickhouse.status === 'fulfilled' && redis.status === 'fulfilled') {
    const servers = [clickhouse.value, redis.value];
    const stop = async () => {
      await Promise.all(servers.map((server) => server.stop()));
      await removeIfTemporary();
    };
    return { dataDir, clickhouse: clickhouse.value, redis: redis.value, stop };
  }

  for (const server of [clickhouse, redis]) {
    if (server.status === 'fulfilled') await server.value.stop();
  }
  await removeIfTemporary();
  throw clickhouse.status === 'rejected' ? clickhouse.reason : redis.status === 'rejected' ? redis.reason : undefined;
}
