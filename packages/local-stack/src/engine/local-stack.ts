import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type RunningClickHouse, startClickHouse } from './clickhouse.js';
import { DataDirectory } from './data-directory.js';
import { type RunningRedis, startRedis } from './redis.js';

export interface LocalStackOptions {
  /** Where the data stays. Default: a new temporary directory that `stop` removes. */
  dataDir?: string | undefined;
  /** Called with one line before a step that takes long, such as installing Redis. */
  say?: ((line: string) => void) | undefined;
}

export interface LocalStack {
  /** Locked until `stop`. A server that was killed may be started again in it. */
  readonly directory: DataDirectory;
  readonly clickhouse: RunningClickHouse;
  readonly redis: RunningRedis;
  /** Stops both servers, by force if they do not end. Safe to call again. */
  stop(): Promise<void>;
}

/**
 * Starts a ClickHouse and a Redis in one data directory, or neither.
 *
 * @throws LocalStackError
 * @throws RedisUnavailableError
 */
export async function startLocalStack(options: LocalStackOptions = {}): Promise<LocalStack> {
  const directory = await DataDirectory.open(options.dataDir ?? (await mkdtemp(join(tmpdir(), 'meterline-'))));
  const started = await Promise.allSettled([
    startClickHouse({ dataDir: directory }),
    startRedis({ dataDir: directory, say: options.say }),
  ]);
  const stop = async () => {
    await Promise.all(started.map((server) => (server.status === 'fulfilled' ? server.value.stop() : undefined)));
    await directory.close();
    if (options.dataDir === undefined) await rm(directory.path, { recursive: true, force: true, maxRetries: 5 });
  };

  const [clickhouse, redis] = started;
  if (clickhouse.status === 'fulfilled' && redis.status === 'fulfilled') {
    return { directory, clickhouse: clickhouse.value, redis: redis.value, stop };
  }
  await stop();
  throw clickhouse.status === 'rejected' ? clickhouse.reason : redis.status === 'rejected' ? redis.reason : undefined;
}
